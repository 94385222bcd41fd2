"""What lookups of the past found, and what people ruled where none could tell."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from reconciliation.cases import HALTS_PAYMENT
from reconciliation.matching import Finding, match
from reconciliation.models import Case, Ruling, RulingEnd
from reconciliation.resolutions import SECOND_SIGNATURE_SECONDS
from refunds.dispatch import expected_of
from refunds.domain import states
from refunds.domain.fingerprint import digest
from refunds.domain.outcome import RefundRecord
from refunds.models import Evidence, Person
from refunds.providers import registry
from review.demo.past.desk import Desk
from review.demo.past.provider import learn
from review.demo.past.rows import Past
from review.demo.past.sending import book, release

_DUE = timedelta(hours=4)
_CHOICES = {
    "ruled_happened": "happened",
    "ruled_not_happened": "not_happened",
    "ruled_different": "accept_figure",
}


def look(
    desk: Desk,
    past: Past,
    at: datetime,
    *records: RefundRecord,
    cannot: str = "",
) -> tuple[Finding, Evidence]:
    """A lookup at an instant, and what it found. `cannot`: why it could not tell."""
    row = past.row
    row.lookup_started += 1
    account = registry.account(row.provider_account)
    finding = match(
        records,
        expected_of(row),
        complete=not cannot,
        why_incomplete=cannot,
        known_refs=frozenset(each.ref for each in desk.rows.refunds if each.operation is row),
        first_recorded_at=past.attempt.recorded_at if past.attempt else row.created_at,
    )
    shown = [candidate.facts() for candidate in finding.candidates]
    evidence = Evidence(
        operation=row,
        lookup_no=row.lookup_started,
        kind="lookup",
        started_at=at - timedelta(seconds=0.2),
        stored_at=at,
        body=b"" if cannot else json.dumps({"items": shown}).encode(),
        facts={
            "verdict": str(finding.verdict),
            "because": finding.because,
            "method": "list of the payment's refunds",
            "complete": not cannot,
            "pages": 0 if cannot else 1,
            "account": account.identity(),
            "candidates": shown,
        },
    )
    desk.rows.evidence.append(evidence)
    past.sold.busy_until = max(past.sold.busy_until, at)
    return finding, evidence


def record(
    past: Past, ref: str, status: str, at: datetime, *, amount_minor: int = 0
) -> RefundRecord:
    """Our refund as the provider lists it."""
    row = past.row
    return RefundRecord(
        ref=ref,
        payment_ref=row.payment.ref,
        amount_minor=amount_minor or row.amount_minor,
        currency=row.currency,
        provider_status=status,
        marker=row.marker,
        created_at=at,
    )


def find(desk: Desk, past: Past, event: str, at: datetime, record: RefundRecord) -> None:
    """A lookup shows our refund, and the operation moves by what it shows."""
    finding, evidence = look(desk, past, at, record)
    past.row.lookup_applied = past.row.lookup_started
    desk.move(
        past,
        event,
        states.RECONCILER,
        "reconciler",
        at,
        {"because": finding.because, "ref": record.ref},
        evidence=evidence,
    )
    counts = event == "found_succeeded"
    _seen(desk, past, record, at, counts=counts)
    if counts:
        book(desk, past)
    elif event == "found_failed":
        release(desk, past, at)
    if past.case is not None and past.row.state in states.ENDED:
        close_case(past, at, finding.because)


def _seen(desk: Desk, past: Past, record: RefundRecord, at: datetime, *, counts: bool) -> None:
    for known in desk.rows.refunds:
        if known.operation is past.row and known.ref == record.ref:
            known.provider_status, known.counts = record.provider_status, counts
            return
    amount_minor = record.amount_minor or 0
    made_at = record.created_at or at
    learn(
        desk,
        past.sold,
        past,
        record.ref,
        amount_minor,
        record.provider_status,
        made_at,
        at,
        counts=counts,
    )


def take_back(desk: Desk, past: Past, at: datetime) -> None:
    """The bank sends a refund back that had succeeded."""
    known = next(each for each in desk.rows.refunds if each.operation is past.row)
    _, evidence = look(desk, past, at, record(past, known.ref, "failed", at))
    desk.move(
        past,
        "taken_back",
        states.RECONCILER,
        "reconciler",
        at,
        {"because": f"{known.ref} came back from the bank.", "ref": known.ref},
        evidence=evidence,
    )
    known.provider_status, known.counts = "failed", False
    past.sold.payment.refunded_minor -= past.row.amount_minor
    desk.bump(
        past.sold,
        "taken_back",
        at,
        by="reconciler",
        of=past,
        amount_minor=past.row.amount_minor,
    )


def contradict(desk: Desk, past: Past, at: datetime, record: RefundRecord) -> None:
    """A refund that ended as failed is there after all: held again, for a person."""
    finding, evidence = look(desk, past, at, record)
    past.row.lookup_applied = past.row.lookup_started
    _seen(desk, past, record, at, counts=False)
    assert past.reservation is not None
    past.reservation.state = "held"
    past.sold.payment.held_minor += past.row.amount_minor
    desk.bump(
        past.sold,
        "contradicted",
        at,
        by="reconciler",
        of=past,
        amount_minor=past.row.amount_minor,
    )
    detail = {"because": finding.because, "ref": record.ref}
    desk.move(
        past,
        "contradicted",
        states.RECONCILER,
        "reconciler",
        at,
        detail,
        evidence=evidence,
    )
    open_case(desk, past, "contradiction", at, finding.because)


def rule(
    desk: Desk,
    past: Past,
    event: str,
    at: datetime,
    by: tuple[Person, Person],
    because: str,
    *,
    ref: str = "",
    amount_minor: int = 0,
) -> None:
    """Two people say what happened, the second by a signature; the case ends with it."""
    actor = ", ".join(f"person:{each.username}" for each in by)
    detail = {"because": because, "ref": ref or None}
    moved = desk.move(past, event, states.OPERATORS, actor, at, detail)
    assert past.case is not None
    first, second = by
    signed = Ruling(
        case=past.case,
        choice=_CHOICES[event],
        reason=because,
        said={"ref": ref} if ref else {},
        shown={},
        evidence_digest=digest({"case": str(past.row.pk), "event": event}),
        operation_version=moved.seq - 1,
        people=2,
        first_by=first,
        at=at - timedelta(minutes=20),
        lapses_at=at + timedelta(seconds=SECOND_SIGNATURE_SECONDS),
    )
    ended = RulingEnd(ruling=signed, outcome="in_force", by=second, at=at)
    desk.rows.rulings.append((moved, signed, ended))
    if event == "ruled_not_happened":
        release(desk, past, at)
    else:
        paid_minor = amount_minor or past.row.amount_minor
        learn(desk, past.sold, past, ref, paid_minor, "succeeded", at, at, counts=True)
        book(desk, past, paid_minor)
        if paid_minor != past.row.amount_minor:
            desk.bump(
                past.sold,
                "difference",
                at,
                by=actor,
                of=past,
                amount_minor=paid_minor,
                detail={"ref": ref},
            )
    close_case(past, at, because)


def open_case(
    desk: Desk, past: Past, reason: str, at: datetime, because: str, owner: Person | None = None
) -> Case:
    """A case: the operation is halted until it is closed, the payment too where it must be."""
    past.row.halted = True
    past.sold.payment.halted |= reason in HALTS_PAYMENT
    past.case = Case(
        operation=past.row,
        payment=past.sold.payment,
        reasons=[reason],
        because=because,
        opened_at=at,
        due_at=at + _DUE,
        owner=owner,
        owned_until=at + timedelta(minutes=30) if owner else None,
    )
    desk.rows.cases.append(past.case)
    return past.case


def close_case(past: Past, at: datetime, because: str) -> None:
    """The case ends, and the halt with it."""
    assert past.case is not None
    past.case.closed_at, past.case.closed_because = at, because
    past.row.halted = False
