"""What became of the wishes that are still open when the demo begins, `now` being that instant."""

from __future__ import annotations

from datetime import datetime, timedelta

from refunds.models import Person
from review.demo.past import bodies
from review.demo.past.deciding import approve
from review.demo.past.desk import Desk
from review.demo.past.finding import contradict, look, open_case, record
from review.demo.past.provider import paid, paid_by_hand
from review.demo.past.rows import Past
from review.demo.past.sending import answer, claim
from review.demo.past.stories import (
    NO_LOOKUP,
    NOBODY_CAN_TELL,
    another_amount,
    approvers_of,
    authorize,
    go_stale,
    minutes,
    rate_limited,
    seconds,
    send,
)

# A person's hold on a case of the demo lasts while the first visitor looks around.
_OWNED = timedelta(minutes=30)


def waiting(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """Nobody has decided yet."""


def half_approved(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """One of two people said yes."""
    approve(desk, past, approvers_of(desk, past.row)[0], at + minutes(11))


def stale(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    go_stale(desk, past, at)


def stale_by_refund_elsewhere(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """Approved by one, and a refund made by hand at the provider moved the balance since."""
    approve(desk, past, approvers_of(desk, past.row)[0], at + minutes(5))
    paid_by_hand(desk, past.sold, at + minutes(9), past.sold.payment.captured_minor // 4)


def backing_off(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The provider's rate limit turned it away four times; the next try is minutes ahead."""
    authorized_at = authorize(desk, past, now - minutes(110))
    sent_at = max(authorized_at + seconds(11), now - minutes(4))
    for pause in (5, 30, 120, 600):
        claim(desk, past, sent_at)
        answered_at = answer(desk, past, rate_limited(past.row, sent_at))
        past.row.not_before = past.row.due_at = answered_at + seconds(pause)
        sent_at = answered_at + seconds(pause)


def sending(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The request is out, and whoever sent it has not come back; its lease ends in a minute."""
    authorize(desk, past, now - minutes(110))
    claimed_at = now - seconds(5)
    attempt = claim(desk, past, claimed_at)
    attempt.connected_at = claimed_at + seconds(0.02)
    attempt.first_byte_at = claimed_at + seconds(0.03)
    paid(desk, past, (claimed_at + seconds(0.05), "succeeded"))


def working(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The provider accepted it and is working on it for a quarter of an hour more."""
    claimed_at = send(desk, past, now - minutes(115))
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "pending"), (now + minutes(15), "succeeded"))
    answer(desk, past, bodies.shown(past.row, ref, "pending", made_at))
    past.row.due_at = now + seconds(20)


def needs_customer(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The provider waits for the customer's bank details, for more than a day now."""
    _overdue(desk, past, at, now, "requires_action")


def overdue(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The provider has been working on it for more than a day: a case."""
    _overdue(desk, past, at, now, "pending")


def _overdue(desk: Desk, past: Past, at: datetime, now: datetime, status: str) -> None:
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, status))
    answer(desk, past, bodies.shown(past.row, ref, status, made_at))
    opened_at = claimed_at + timedelta(days=1)
    look(desk, past, opened_at, record(past, ref, status, made_at))
    because = "The provider has been working on it for a day."
    open_case(desk, past, "overdue_pending", opened_at, because)
    _look_later(desk, past, now)


def nobody_can_tell(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The answer was lost on an account without lookups; for some of them it did happen."""
    claimed_at = send(desk, past, at)
    if desk.chance.random() < 0.5:
        paid(desk, past, (claimed_at + seconds(0.05), "succeeded"))
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    look(desk, past, unknown_at + seconds(1), cannot=NO_LOOKUP)
    open_case(desk, past, "unresolved", unknown_at + seconds(1), NOBODY_CAN_TELL)
    _look_later(desk, past, now, owner=_somebody(desk))


def no_record(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The answer was lost, and the provider's list shows nothing of ours, which proves nothing."""
    claimed_at = send(desk, past, at)
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    for after in (1.1, 2.1, 4.2, 8.0, 15.6):
        look(desk, past, unknown_at + seconds(after))
    because = "The outcome has been unknown for longer than 15 s."
    open_case(desk, past, "unresolved", unknown_at + seconds(15.6), because)
    for hours in (1, 2, 3):
        look(desk, past, unknown_at + timedelta(hours=hours))
    _look_later(desk, past, now, owner=_somebody(desk))


def differs(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    another_amount(desk, past, at)
    _look_later(desk, past, now, owner=desk.people["ines"])


def contradicted(desk: Desk, past: Past, at: datetime, now: datetime) -> None:
    """The provider refused it, and an hour later its list shows that it was paid all the same."""
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    stripe = past.row.provider_account.startswith("stripe")
    code = "charge_not_refundable" if stripe else "payment_not_refundable"
    answer(desk, past, bodies.error(past.row, 400 if stripe else 422, code, claimed_at))
    ref = paid(desk, past, (made_at, "succeeded"))
    contradict(desk, past, claimed_at + minutes(61), record(past, ref, "succeeded", made_at))
    _look_later(desk, past, now)


def _somebody(desk: Desk) -> Person | None:
    name = desk.chance.choice(("omar", "ines", "olga", ""))
    return desk.people.get(name)


def _look_later(desk: Desk, past: Past, now: datetime, owner: Person | None = None) -> None:
    """The next automatic look is within the hour; somebody may have taken the case just now."""
    past.row.due_at = now + minutes(desk.chance.uniform(6, 60))
    case = past.case
    assert case is not None
    case.owner = owner
    case.owned_until = now + _OWNED if owner else None
    # Some are late, some are not: what a queue of cases looks like.
    case.due_at = case.opened_at + timedelta(hours=desk.chance.choice((4, 28, 76)))
