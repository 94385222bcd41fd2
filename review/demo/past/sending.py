"""The sends of the past: the claim, the attempt, and what its answer did."""

from __future__ import annotations

from datetime import datetime, timedelta

from refunds.dispatch import expected_of
from refunds.domain import states
from refunds.domain.outcome import Outcome, RawAnswer, RefundRecord
from refunds.models import Attempt, Evidence, Reservation
from refunds.providers import registry
from review.demo.past.desk import Desk
from review.demo.past.provider import learn
from review.demo.past.rows import Past

_WORKERS = ("dispatcher:demo:4071", "dispatcher:demo:4072")
_EVENTS = {
    Outcome.CONFIRMED: "confirmed",
    Outcome.ACCEPTED: "accepted",
    Outcome.REFUSED: "refused",
    Outcome.TURNED_AWAY: "not_executed",
    Outcome.NOT_SENT: "not_executed",
    Outcome.UNANSWERED: "unanswered",
}


def claim(desk: Desk, past: Past, at: datetime) -> Attempt:
    """The money is set aside, where it is not yet, and an attempt is recorded."""
    row, payment = past.row, past.sold.payment
    worker = desk.chance.choice(_WORKERS)
    if past.reservation is None or past.reservation.state != "held":
        assert row.send_version is not None
        row.send_version += 1
        payment.held_minor += row.amount_minor
        past.reservation = Reservation(
            operation=row, payment=payment, amount_minor=row.amount_minor, state="held"
        )
        desk.bump(past.sold, "reserved", at, by=worker, of=past, amount_minor=row.amount_minor)
    row.attempt_count += 1
    row.not_before = None
    desk.move(
        past,
        "submission_started",
        states.DISPATCHER,
        worker,
        at,
        attempt_no=row.attempt_count,
    )
    row.due_at = at + timedelta(seconds=60)
    account = registry.account(row.provider_account)
    past.attempt = Attempt(
        operation=row,
        no=row.attempt_count,
        fence=row.version,
        recorded_at=at,
        send_deadline=at + timedelta(seconds=2),
        lease_until=row.due_at,
        account_identity=account.identity(),
        contract_hash=account.contract.hash(),
    )
    desk.rows.attempts.append(past.attempt)
    return past.attempt


def answer(desk: Desk, past: Past, raw: RawAnswer) -> datetime:
    """What came back, read by the account's adapter; the instant at which it was recorded."""
    row, attempt = past.row, past.attempt
    assert attempt is not None
    assert raw.closed_at is not None
    at = raw.closed_at
    adapter = registry.adapter(registry.account(row.provider_account))
    answer = adapter.read_answer(raw, expected_of(row))
    evidence = Evidence(
        operation=row,
        attempt_no=attempt.no,
        kind="answer",
        started_at=attempt.recorded_at,
        stored_at=at,
        body=raw.body,
        facts=answer.facts()
        | {"status": raw.status, "headers": raw.headers, "failure": raw.failure},
    )
    desk.rows.evidence.append(evidence)
    attempt.outcome = str(answer.outcome)
    attempt.connected_at, attempt.first_byte_at = raw.connected_at, raw.first_byte_at
    attempt.closed_at = attempt.stop_proof_at = at
    desk.move(
        past,
        _EVENTS[answer.outcome],
        states.DISPATCHER,
        desk.chance.choice(_WORKERS),
        at,
        {"because": answer.because, "code": answer.code},
        attempt_no=attempt.no,
        evidence=evidence,
    )
    _follow(desk, past, answer.outcome, answer.record, at)
    return at


def _follow(
    desk: Desk, past: Past, outcome: Outcome, record: RefundRecord | None, at: datetime
) -> None:
    row = past.row
    if outcome is Outcome.REFUSED:
        release(desk, past, at)
    elif outcome in (Outcome.TURNED_AWAY, Outcome.NOT_SENT):
        row.not_before = row.due_at = at + timedelta(seconds=5)
    elif outcome in (Outcome.CONFIRMED, Outcome.ACCEPTED):
        assert record is not None
        made_at = record.created_at or at
        booked = outcome is Outcome.CONFIRMED
        learn(
            desk,
            past.sold,
            past,
            record.ref,
            row.amount_minor,
            record.provider_status,
            made_at,
            at,
            counts=booked,
        )
        if booked:
            book(desk, past)
        else:
            acts = record.provider_status == "requires_action"
            row.pending_reason = "needs_customer" if acts else "provider_working"


def sender_dies(desk: Desk, past: Past, at: datetime) -> None:
    """The lease ends, and nobody ever reports what the attempt came to."""
    attempt = past.attempt
    assert attempt is not None
    attempt.closed_at = at
    desk.move(
        past,
        "lease_ended",
        states.RECONCILER,
        "reconciler",
        at,
        {"because": "The worker did not come back before its lease ended."},
        attempt_no=attempt.no,
    )


def release(desk: Desk, past: Past, at: datetime) -> None:
    """What was set aside is given back."""
    assert past.reservation is not None
    past.reservation.state = "released"
    past.sold.payment.held_minor -= past.row.amount_minor
    amount_minor = past.row.amount_minor
    desk.bump(past.sold, "released", at, by="reconciler", of=past, amount_minor=amount_minor)


def book(desk: Desk, past: Past, amount_minor: int | None = None) -> None:
    assert past.reservation is not None
    past.reservation.state = "booked"
    payment = past.sold.payment
    payment.held_minor -= past.row.amount_minor
    payment.refunded_minor += past.row.amount_minor if amount_minor is None else amount_minor
