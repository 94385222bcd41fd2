"""What became of the wishes that have ended. Each story begins with a stored proposal.

A story gets the proposal and the instant of it, and plays on until nothing more happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from refunds.domain import states
from refunds.domain.outcome import RawAnswer
from refunds.models import Operation, Person
from review.demo.past import bodies
from review.demo.past.deciding import approve, lapse
from review.demo.past.desk import Desk
from review.demo.past.finding import (
    close_case,
    find,
    look,
    open_case,
    record,
    rule,
    take_back,
)
from review.demo.past.provider import paid
from review.demo.past.rows import Past
from review.demo.past.sending import answer, claim, sender_dies
from review.demo.past.stock import REJECTIONS, WITHDRAWALS

_LEADS = ("ada", "ben", "cleo")
_SEND_DELAY = timedelta(seconds=10)
NO_LOOKUP = "this account has no lookup"
NOBODY_CAN_TELL = "This account has no lookup and no notices: only a person can find out."


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def leads_for(desk: Desk, row: Operation) -> list[Person]:
    """Leads who may decide about it: not their own proposal, nor their agent's; in any order."""
    own = {row.proposer, row.agent_owner}
    leads = [desk.people[name] for name in _LEADS if desk.people[name] not in own]
    return desk.chance.sample(leads, k=len(leads))


def approvers_of(desk: Desk, row: Operation) -> list[Person]:
    """As many people as its tier asks for."""
    leads = leads_for(desk, row)
    if row.tier == 3:
        return [leads[0], desk.people["fay"]]
    return leads[: row.quorum]


def authorize(desk: Desk, past: Past, at: datetime) -> datetime:
    """Everybody who must say yes does, minutes apart; when the last one did."""
    for person in approvers_of(desk, past.row):
        at += minutes(desk.chance.uniform(2, 50))
        approve(desk, past, person, at)
    return at


def send(desk: Desk, past: Past, at: datetime) -> datetime:
    """Approved, and claimed when the time to take it back was over; when it was claimed."""
    claimed_at = authorize(desk, past, at) + _SEND_DELAY + seconds(desk.chance.uniform(0.1, 3))
    claim(desk, past, claimed_at)
    return claimed_at


def pay(desk: Desk, past: Past, claimed_at: datetime) -> None:
    """The provider does what it was asked, and says so."""
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "succeeded"))
    answer(desk, past, bodies.shown(past.row, ref, "succeeded", made_at))


def paid_at_once(desk: Desk, past: Past, at: datetime) -> None:
    pay(desk, past, send(desk, past, at))


def answer_lost(desk: Desk, past: Past, at: datetime) -> None:
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "succeeded"))
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    for after in (1.1, 2.2, 4.1)[: desk.chance.randrange(4)]:
        look(desk, past, unknown_at + seconds(after))
    found = record(past, ref, "succeeded", made_at)
    find(desk, past, "found_succeeded", unknown_at + seconds(7.9), found)


def lookups_away(desk: Desk, past: Past, at: datetime) -> None:
    """The answer is lost and the provider's reading side is down: a case, closed by evidence."""
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "succeeded"))
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    for after in (1.1, 2.2, 4.1, 8.3, 16.0):
        cannot = "the provider answered HTTP 503"
        look(desk, past, unknown_at + seconds(after), cannot=cannot)
    because = "The outcome has been unknown for longer than 15 s."
    owner = desk.people[desk.chance.choice(("omar", "ines"))]
    open_case(desk, past, "unresolved", unknown_at + seconds(16), because, owner)
    found_at = unknown_at + minutes(desk.chance.uniform(58, 66))
    find(desk, past, "found_succeeded", found_at, record(past, ref, "succeeded", made_at))


def error_500(desk: Desk, past: Past, at: datetime) -> None:
    claimed_at = send(desk, past, at)
    ref = paid(desk, past, (claimed_at + seconds(0.05), "succeeded"))
    raw = bodies.error(past.row, 500, "server_error", claimed_at)
    found = record(past, ref, "succeeded", claimed_at + seconds(0.05))
    find(desk, past, "found_succeeded", answer(desk, past, raw) + seconds(1.2), found)


def sender_died(desk: Desk, past: Past, at: datetime) -> None:
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "succeeded"))
    ended_at = claimed_at + seconds(62)
    sender_dies(desk, past, ended_at)
    find(
        desk,
        past,
        "found_succeeded",
        ended_at + seconds(1.3),
        record(past, ref, "succeeded", made_at),
    )


def turned_away(desk: Desk, past: Past, at: datetime) -> None:
    """The provider's rate limit turns the first try away; the second passes."""
    claimed_at = send(desk, past, at)
    at = answer(desk, past, rate_limited(past.row, claimed_at))
    claim(desk, past, at + seconds(5.4))
    pay(desk, past, at + seconds(5.4))


def rate_limited(row: Operation, sent_at: datetime) -> RawAnswer:
    stripe = row.provider_account.startswith("stripe")
    return bodies.error(row, 429, "rate_limit" if stripe else "rate_limited", sent_at)


def accepted(desk: Desk, past: Past, at: datetime) -> None:
    """The provider says pending, and succeeds some minutes later."""
    claimed_at = send(desk, past, at)
    made_at, done_at = claimed_at + seconds(0.05), claimed_at + minutes(desk.chance.uniform(2, 9))
    ref = paid(desk, past, (made_at, "pending"), (done_at, "succeeded"))
    answer(desk, past, bodies.shown(past.row, ref, "pending", made_at))
    found = record(past, ref, "succeeded", made_at)
    find(desk, past, "found_succeeded", done_at + seconds(12), found)


def failed_later(desk: Desk, past: Past, at: datetime) -> None:
    """The provider says pending, and the bank refuses it an hour later."""
    claimed_at = send(desk, past, at)
    made_at, done_at = claimed_at + seconds(0.05), claimed_at + minutes(61)
    ref = paid(desk, past, (made_at, "pending"), (done_at, "failed"))
    answer(desk, past, bodies.shown(past.row, ref, "pending", made_at))
    find(desk, past, "found_failed", done_at + seconds(14), record(past, ref, "failed", made_at))


def refused(desk: Desk, past: Past, at: datetime) -> None:
    """The customer disputed the payment with the bank; the provider refuses to refund it."""
    claimed_at = send(desk, past, at)
    code = (
        "charge_disputed" if past.row.provider_account.startswith("stripe") else "payment_disputed"
    )
    raw = bodies.error(past.row, 400 if code[0] == "c" else 422, code, claimed_at)
    desk.payment_turns(past.sold, answer(desk, past, raw) + minutes(20), "disputed")


def returned(desk: Desk, past: Past, at: datetime) -> None:
    """It succeeded, and days later the bank sent the money back: the customer is still owed."""
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    back_at = claimed_at + timedelta(days=desk.chance.uniform(1, 2))
    ref = paid(desk, past, (made_at, "succeeded"), (back_at, "failed"))
    answer(desk, past, bodies.shown(past.row, ref, "succeeded", made_at))
    take_back(desk, past, back_at + minutes(4))
    because = "The account was closed; the money came back. The customer still expects it."
    open_case(desk, past, "remedy", back_at + minutes(4), because, desk.people["omar"])
    if desk.chance.random() < 0.5:
        close_case(past, back_at + minutes(190), "Paid by voucher V-5521.")


def ruled_happened(desk: Desk, past: Past, at: datetime) -> None:
    """No lookup exists; two people saw the refund in the provider's own console."""
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    ref = paid(desk, past, (made_at, "succeeded"))
    _only_people(desk, past, claimed_at)
    by = _signers(desk, past)
    because = f"Seen in the provider's console as {ref}, same amount and time."
    rule(desk, past, "ruled_happened", claimed_at + minutes(170), by, because, ref=ref)


def ruled_not_happened(desk: Desk, past: Past, at: datetime) -> None:
    claimed_at = send(desk, past, at)
    _only_people(desk, past, claimed_at)
    by = _signers(desk, past)
    because = "The provider states in writing that the request never arrived."
    rule(desk, past, "ruled_not_happened", claimed_at + minutes(400), by, because)


def _signers(desk: Desk, past: Past) -> tuple[Person, Person]:
    """Two who may rule, the second an ops lead; nobody about what they proposed themselves."""
    may = [desk.people[name] for name in ("omar", "ines", "olga")]
    may = [each for each in may if each.pk != past.row.proposer_id]
    return may[0], may[-1]


def _only_people(desk: Desk, past: Past, claimed_at: datetime) -> None:
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    look(desk, past, unknown_at + seconds(1), cannot=NO_LOOKUP)
    open_case(
        desk, past, "unresolved", unknown_at + seconds(1), NOBODY_CAN_TELL, desk.people["omar"]
    )


def another_amount(desk: Desk, past: Past, at: datetime) -> datetime:
    """The provider refunds less than it was asked to; a case asks a person. When it was opened."""
    claimed_at = send(desk, past, at)
    made_at = claimed_at + seconds(0.05)
    less_minor = past.row.amount_minor * 9 // 10 // 10 * 10
    ref = paid(desk, past, (made_at, "succeeded"), amount_minor=less_minor)
    unknown_at = answer(desk, past, bodies.lost(claimed_at))
    found = record(past, ref, "succeeded", made_at, amount_minor=less_minor)
    finding, _ = look(desk, past, unknown_at + seconds(1.2), found)
    past.row.lookup_applied = past.row.lookup_started
    open_case(
        desk, past, "mismatch", unknown_at + seconds(1.2), finding.because, desk.people["ines"]
    )
    return unknown_at


def mismatched(desk: Desk, past: Past, at: datetime) -> None:
    """Two people accept the other amount that the provider paid."""
    opened_at = another_amount(desk, past, at)
    told = next(each for each in desk.rows.book if each.get("marker") == past.row.marker)
    by = _signers(desk, past)
    because = "The provider kept its fee; the figure it booked is accepted."
    rule(
        desk,
        past,
        "ruled_different",
        opened_at + minutes(140),
        by,
        because,
        ref=told["id"],
        amount_minor=told["amount_minor"],
    )


def denied(desk: Desk, past: Past, at: datetime) -> None:
    """Policy refused it when it was proposed; nothing more happens."""


def rejected(desk: Desk, past: Past, at: datetime) -> None:
    lead = leads_for(desk, past.row)[0]
    at += minutes(desk.chance.uniform(5, 120))
    code, reason = desk.chance.choice(REJECTIONS)
    detail = {"reason": reason, "code": code}
    desk.move(past, "rejected", states.APPROVER, f"person:{lead.username}", at, detail)


def withdrawn(desk: Desk, past: Past, at: datetime) -> None:
    row = past.row
    actor = f"agent:{row.agent.name}" if row.agent else f"person:{row.proposer}"
    detail = {"reason": desk.chance.choice(WITHDRAWALS)}
    at += minutes(desk.chance.uniform(3, 90))
    desk.move(past, "withdrawn", states.CALLER, actor, at, detail)


def expired(desk: Desk, past: Past, at: datetime) -> None:
    desk.move(past, "expired", states.POLICY, "policy", past.row.expires_at + seconds(20))


def stale_then_paid(desk: Desk, past: Past, at: datetime) -> None:
    """The order changed between approval and send; people looked again and said yes again."""
    at = go_stale(desk, past, at)
    pay(desk, past, send(desk, past, at))


def go_stale(desk: Desk, past: Past, at: datetime) -> datetime:
    """Approved, then the shop's feed changes the order, and the approval no longer applies."""
    at = authorize(desk, past, at)
    now = past.sold.order.return_state
    fresh = "received" if now != "received" else "inspected"
    desk.feed(past.sold, at + seconds(4), return_state=fresh)
    at += seconds(12)
    lapse(desk, past, "approval_lapsed", states.POLICY, "policy", at, "order_changed")
    return at


def taken_back_by_lead(desk: Desk, past: Past, at: datetime) -> None:
    """A lead notices a wrong press within the ten seconds, and then rejects it."""
    at = authorize(desk, past, at)
    lead = past.approvals[-1][1].approver
    actor = f"person:{lead.username}"
    lapse(desk, past, "approval_revoked", states.APPROVER, actor, at + seconds(6), "taken_back")
    detail = {"reason": "Approved by mistake: it was the wrong parcel.", "code": "not_owed"}
    desk.move(past, "rejected", states.APPROVER, actor, at + minutes(1), detail)
