"""Reading one operation as `decide` sees it, under the locks of the caller."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from reconciliation.decide import AttemptView, View
from reconciliation.lookup import INCONCLUSIVE
from reconciliation.matching import Finding, Verdict, match
from reconciliation.models import Case
from refunds.dispatch import expected_of
from refunds.domain.contract import ProviderContract
from refunds.domain.outcome import RefundRecord
from refunds.models import Attempt, Event, Evidence, Operation, ProviderRefund, Quarantine
from refunds.providers.base import instant
from refunds.why import order_explained, sendable_until

_AT_THE_DOOR = (401, 403, 429)


def view_of(operation: Operation, contract: ProviderContract) -> View:
    """The operation as `decide` sees it; `contract` is what its attempts are held to."""
    attempts = Attempt.objects.filter(operation=operation).order_by("no")
    kept = _kept_answers(operation, contract)
    inconclusive = Evidence.objects.filter(
        operation=operation,
        kind="lookup",
        facts__verdict__in=[str(each) for each in INCONCLUSIVE],
    ).values_list("started_at", flat=True)
    counted = ProviderRefund.objects.filter(operation=operation, counts=True)
    booked = counted.order_by("pk").first()
    return View(
        state=operation.state,
        entered_at=operation.entered_at,
        unknown_since=operation.unknown_since,
        attempts=tuple(
            AttemptView(
                no=each.no,
                outcome=each.outcome,
                recorded_at=each.recorded_at,
                send_deadline=each.send_deadline,
                stop_proof_at=each.stop_proof_at,
                settled_by_evidence=each.settled_by_evidence is not None,
                kept=kept.get(each.no, ""),
            )
            for each in attempts
        ),
        has_case=Case.objects.filter(operation=operation, closed_at=None).exists(),
        inconclusive_at=tuple(inconclusive),
        booked_ref=booked.ref if booked else None,
        halted=operation.halted,
        adopted=Event.objects.filter(operation=operation, event="adopted").exists(),
        quarantined=Quarantine.objects.filter(lifted_at=None).exists(),
        explained=order_explained(operation),
        sendable_until=sendable_until(operation),
        rested_on=_rested_on(operation),
        booked_minor=booked.amount_minor if booked else None,
        by_ruling=_by_ruling(operation),
        sighted=sighted(operation),
        answered=Case.objects.filter(
            operation=operation,
            reasons__contains=["contradiction"],
            opened_at__gte=operation.entered_at,
            closed_at__isnull=False,
        ).exists(),
    )


def _by_ruling(operation: Operation) -> bool:
    last = Event.objects.filter(operation=operation).order_by("-seq").first()
    return last is not None and last.event in ("ruled_happened", "ruled_different")


def sighted(operation: Operation) -> bool:
    """Whether a list of the account showed a refund of ours that no lookup has read since."""
    shown = Evidence.objects.filter(operation=operation, kind="listing").order_by("-pk").first()
    if shown is None:
        return False
    told = [str(each) for each in Verdict if each not in INCONCLUSIVE]
    lookups = Evidence.objects.filter(operation=operation, kind="lookup", facts__verdict__in=told)
    return not lookups.filter(started_at__gte=shown.started_at).exists()


def _rested_on(operation: Operation) -> frozenset[int]:
    named = Event.objects.filter(operation=operation, detail__has_key="accepted")
    return frozenset(
        each for ids in named.values_list("detail__accepted", flat=True) for each in ids
    )


def _kept_answers(
    operation: Operation, contract: ProviderContract
) -> dict[int, Literal["error", "turned_away"]]:
    """What the provider was seen to answer again under our key, per attempt.

    Its header says so where it has one. Where it keeps server errors, one to a later attempt is one
    that it will give for good.
    """
    kept: dict[int, Literal["error", "turned_away"]] = {}
    answers = Evidence.objects.filter(operation=operation, kind="answer").order_by("pk")
    for no, facts in answers.values_list("attempt_no", "facts"):
        assert no is not None, "an answer is of an attempt"
        status = facts.get("status") or 0
        again = (facts.get("headers") or {}).get("idempotent-replayed") == "true"
        if status >= 500 and (again or (no > 1 and contract.server_errors_replayed)):
            kept[no] = "error"
        elif again and status in _AT_THE_DOOR:
            kept[no] = "turned_away"
    return kept


def from_answers(operation: Operation, *, complete: bool) -> Finding | None:
    """What our own stored answers show: they decide where no lookup can (and beside one).

    `complete`: whether the lookup beside them read everything that the provider shows.
    """
    answers = Evidence.objects.filter(operation=operation, kind="answer").exclude(facts__ref=None)
    records = {each.facts["ref"]: _record_of(each.facts) for each in answers}
    if not records:
        return None
    first = Attempt.objects.filter(operation=operation).order_by("no").first()
    finding = match(
        records.values(),
        expected_of(operation),
        complete=True,
        why_incomplete="",
        known_refs=frozenset(records),
        first_recorded_at=first.recorded_at if first else operation.created_at,
    )
    return None if finding.verdict is Verdict.ABSENT else replace(finding, complete=complete)


def _record_of(facts: dict[str, object]) -> RefundRecord:
    amount = facts["amount_minor"]
    return RefundRecord(
        ref=str(facts["ref"]),
        payment_ref=str(facts["payment_ref"]),
        amount_minor=amount if isinstance(amount, int) else None,
        currency=str(facts["currency"]) if facts["currency"] else None,
        provider_status=str(facts["provider_status"]),
        marker=str(facts["marker"]) if facts["marker"] else None,
        created_at=instant(facts.get("created_at")),
    )
