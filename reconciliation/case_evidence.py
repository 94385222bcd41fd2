"""What a case rests on, gathered for its page and again for every press: one reading for both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciliation import unmatched
from reconciliation.absence import Absence, absence_proved
from reconciliation.choices import Question, Seen
from reconciliation.matching import Verdict
from reconciliation.models import Case, CaseStatement, Notice
from refunds import policies
from refunds.domain.contract import Accepted
from refunds.domain.fingerprint import digest
from refunds.making_good import made_good_by, may_make_good
from refunds.models import Evidence, Operation, ProviderRefund
from refunds.providers import registry
from refunds.providers.base import StatusWords

# A decision needs a check that is not older (seconds).
EVIDENCE_FRESH_SECONDS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """`question` is what a choice is judged by; `digest` is of the evidence behind it, whatever
    its age: a later lookup that says the same moves nothing. `shown` names every piece by id.

    `absence`: what proves absence, where anything does.
    """

    question: Question
    digest: bytes
    shown: dict[str, Any]
    absence: Absence = Absence()


def gather(case: Case, now: datetime, accepted: Iterable[Accepted]) -> Gathered:
    """Read what the case rests on; the caller holds its locks, or draws a page. `accepted` is read
    by the caller before any lock (see `refunds.ledger.facts`)."""
    statements = list(
        CaseStatement.objects.filter(case=case).select_related("statement").order_by("pk")
    )
    papers = [bytes(each.statement.sha256).hex() for each in statements]
    if case.operation is None:
        return _about_payment(case, papers)
    return _about_operation(case, case.operation, papers, now, accepted)


def _about_operation(
    case: Case,
    operation: Operation,
    papers: list[str],
    now: datetime,
    accepted: Iterable[Accepted],
) -> Gathered:
    account = registry.accounts().get(operation.provider_account)
    evidence = list(
        Evidence.objects.filter(operation=operation).defer("body").order_by("stored_at", "pk")
    )
    telling = _telling(evidence)
    by_notice = telling is not None and telling.kind == "notice"
    looks = by_notice or (account is not None and account.contract.lookup != "none")
    absence = absence_proved(operation, now, accepted)
    words = registry.adapter(account).words if account else StatusWords()
    limits = policies.current().currencies.get(operation.currency)
    question = Question(
        reasons=tuple(case.reasons),
        state=operation.state,
        account=operation.provider_account,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        tier1_max_minor=limits.tier1_max_minor if limits else None,
        looks=looks,
        seen=tuple(_seen(operation, evidence, telling, words)),
        look_age=_age(telling, now),
        fresh_seconds=EVIDENCE_FRESH_SECONDS,
        absent_because=absence.because,
        quiet=absence.quiet,
        statements=len(papers),
        surplus_minor=_surplus_minor(operation),
        remedy_out=", ".join(each.business_key for each in may_make_good(operation)),
        made_good_by=", ".join(each.business_key for each in made_good_by(operation)),
    )
    basis = telling.facts if telling else {}
    others = [each.pk for each in evidence if each.kind in ("answer", "notice", "listing")]
    shown = {
        "operation": [str(operation.pk), operation.version, operation.state],
        "reasons": list(case.reasons),
        "lookup": {"verdict": basis.get("verdict"), "candidates": basis.get("candidates", [])},
        "evidence": others,
        "statements": papers,
    }
    # Which lookup said it is kept, and is no part of the digest: the next one says the same.
    kept = {**shown, "lookup_evidence": telling.pk if telling else None}
    return Gathered(question=question, digest=digest(shown), shown=kept, absence=absence)


def _age(telling: Evidence | None, now: datetime) -> float | None:
    """Seconds since it was asked. A notice that is a proof was true when it was signed, and where
    there is no lookup nothing newer can be had."""
    if telling is None:
        return None
    return 0.0 if telling.kind == "notice" else (now - telling.started_at).total_seconds()


def _telling(evidence: Iterable[Evidence]) -> Evidence | None:
    """The newest lookup that told anything, or the newest notice that counts as one: a lookup that
    was not answered adds nothing."""
    lookups = [
        each
        for each in evidence
        if (each.kind == "lookup" or (each.kind == "notice" and each.facts.get("is_proof")))
        and each.facts.get("verdict") != str(Verdict.CANNOT_TELL)
    ]
    return max(lookups, key=lambda each: each.lookup_no or 0, default=None)


def _seen(
    operation: Operation, evidence: list[Evidence], telling: Evidence | None, words: StatusWords
) -> list[Seen]:
    shown = list(telling.facts.get("candidates", [])) if telling else []
    by_lookup = {each["ref"] for each in shown}
    for each in evidence:
        if each.kind == "answer" and each.facts.get("ref") and each.facts["ref"] not in by_lookup:
            shown.append({**each.facts, "ours": True, "by_lookup": False})
    shown += _only_listed(evidence, {each["ref"] for each in shown})
    anothers = set(
        ProviderRefund.objects.filter(
            provider_account=operation.provider_account, ref__in=[each["ref"] for each in shown]
        )
        .exclude(operation=operation)
        .exclude(operation=None, payment__order=operation.order_id)
        .values_list("ref", flat=True)
    )
    return [
        Seen(
            ref=str(each["ref"]),
            amount_minor=each.get("amount_minor"),
            currency=each.get("currency"),
            provider_status=str(each.get("provider_status")),
            payment_same=each.get("payment_ref") == operation.payment.ref,
            ours=bool(each.get("ours")),
            paid=each.get("provider_status") in words.succeeded,
            anothers=each["ref"] in anothers,
            by_lookup=each.get("by_lookup", True),
            negative=each.get("provider_status") in words.failed,
            only_listed=each.get("only_listed", False),
        )
        for each in shown
    ]


def _only_listed(evidence: list[Evidence], elsewhere: set[str]) -> list[dict[str, Any]]:
    """What lists and reports of the account showed of it, and nothing else does: as last shown."""
    newest = {each.facts["ref"]: each.facts for each in evidence if each.kind == "listing"}
    return [
        {**facts, "ours": True, "by_lookup": False, "only_listed": True}
        for ref, facts in newest.items()
        if ref not in elsewhere
    ]


def _attachable(case: Case) -> tuple[str, ...]:
    """Operations that a notice of the case can belong to: same account and payment, and its amount
    and currency or our own marker."""
    found: list[str] = []
    for notice in Notice.objects.filter(case=case, applied_at=None).order_by("pk"):
        told = notice.facts
        found += [
            str(each.pk)
            for each in unmatched.candidates(notice)
            if told.get("marker") == each.marker
            or (told.get("amount_minor"), told.get("currency"))
            == (each.amount_minor, each.currency)
        ]
    return tuple(dict.fromkeys(found))


def _surplus_minor(operation: Operation) -> int:
    """What left the payment for this operation besides the refund that it asked for."""
    counting = ProviderRefund.objects.filter(operation=operation, counts=True)
    gone = sum(counting.values_list("amount_minor", flat=True))
    return max(0, gone - operation.amount_minor)


def _about_payment(case: Case, papers: list[str]) -> Gathered:
    """About a payment that no operation explains, or an account whose payment nobody knows."""
    payment = case.payment
    known = ProviderRefund.objects.filter(payment=payment).order_by("pk") if payment else ()
    shown = {
        "payment": [case.account, payment.ref if payment else "", payment.state if payment else ""],
        "reasons": list(case.reasons),
        "because": case.because,
        "refunds": [
            [each.ref, each.amount_minor, each.provider_status, each.counts] for each in known
        ],
        "notices": list(
            Notice.objects.filter(case=case).order_by("pk").values_list("pk", flat=True)
        ),
        "statements": papers,
    }
    question = Question(
        reasons=tuple(case.reasons),
        attachable=_attachable(case),
        account=case.account,
        currency=payment.currency if payment else "",
        statements=len(papers),
        fresh_seconds=EVIDENCE_FRESH_SECONDS,
    )
    return Gathered(question=question, digest=digest(shown), shown=shown)
