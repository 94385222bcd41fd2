"""The rows of the approvals queue: how long is left, what is risky, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from refunds.domain.money import display
from refunds.domain.states import AWAITING_APPROVAL
from review.presenters.facts import ApprovalFacts, EventFacts, OperationFacts
from review.presenters.sentences import only_a_person, stale_words
from review.presenters.words import Clock, actor_word, count_of, state_word

_SOON = timedelta(minutes=30)


def approval_notes(
    op: OperationFacts,
    given: list[ApprovalFacts],
    clock: Clock,
    *,
    dead: Sequence[ApprovalFacts] = (),
    own: str = "",
    earlier: int = 0,
    differing: Sequence[str] = (),
) -> list[str]:
    """The lines under the reason in the approvals queue, the most pressing first.

    `dead`: approvals that the order moved past; `earlier`: refunds of the order that happened or
    may have; `differing`: MC-09 sentences.
    """
    if op.state != AWAITING_APPROVAL:
        return ["Possible repeat of an earlier refund"] if op.possible_repeat else []
    notes = []
    if is_stale(op):
        notes.append(f"Stale: {stale_words(op.stale_cause)}")
    elif op.stale_cause:
        notes.append("Its approval was taken back by a person")
    notes.extend(f"Stale: {counts_no_longer(each)}" for each in dead)
    if own:
        notes.append(own)
    if given:
        notes.append(_first_of_two(op, given, clock))
    if op.possible_repeat:
        notes.append("Possible repeat: a person must confirm that it is separate")
    if earlier:
        notes.append(f"{_ordinal(earlier + 1)} refund on this order")
    notes.extend(differing)
    if only_a_person(op.contract):
        notes.append("If its answer is lost, only a person can find out")
    if op.amount_minor > op.available_minor:
        room = display(max(op.available_minor, 0), op.currency)
        notes.append(f"Only {room} is still refundable")
    return notes


def is_stale(op: OperationFacts) -> bool:
    """Whether it came back by itself; what a person took back has not gone stale."""
    return op.stale_cause not in ("", "taken_back")


def counts_no_longer(gone: ApprovalFacts) -> str:
    """What is said of an approval that the order moved past."""
    return f"{gone.approver}’s approval was for version {gone.order_version} and no longer counts"


def _first_of_two(op: OperationFacts, given: list[ApprovalFacts], clock: Clock) -> str:
    names = " and ".join(each.approver for each in given)
    left = op.quorum - len(given)
    waits = f"; {count_of(left, 'more person', 'more people')} must approve" if left > 0 else ""
    return f"Approved by {names} at {clock.minutes(given[-1].at)}{waits}"


_ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth")


def _ordinal(number: int) -> str:
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"Refund number {number}, a"


def is_expiring(op: OperationFacts, clock: Clock) -> bool:
    """Whether a waiting proposal ends within 30 minutes, or should have ended already."""
    return op.state == AWAITING_APPROVAL and op.expires_at - clock.now < _SOON


def just_came_near(op: OperationFacts, clock: Clock, *, poll_seconds: int) -> bool:
    """Whether it came under 30 minutes since the last poll: that is said once, aloud."""
    left = op.expires_at - clock.now
    near = _SOON - timedelta(seconds=poll_seconds) < left <= _SOON
    return op.state == AWAITING_APPROVAL and near


def time_left(op: OperationFacts, clock: Clock) -> str:
    """The line under the age in the approvals queue; the last half hour in whole minutes."""
    if op.state == AWAITING_APPROVAL:
        left = op.expires_at - clock.now
        if timedelta(0) < left < _SOON:
            return f"{max(1, int(left.total_seconds() // 60))} min left"
        return clock.left(op.expires_at)
    if op.settled_at is not None:
        return f"ended {clock.minutes(op.settled_at)}"
    return f"since {clock.minutes(op.entered_at)}"


def left_words(op: OperationFacts, clock: Clock) -> str:
    """The same with its mark, for a line of its own."""
    return f"expiring: {time_left(op, clock)}" if is_expiring(op, clock) else time_left(op, clock)


def held_back(kinds: Sequence[str], account: str) -> str:
    """What keeps an approved refund from being sent now (`kinds` of open halts that are of this
    account or of all); empty where nothing does."""
    if "stop" in kinds:
        why = "All sending is stopped"
    elif "quarantine" in kinds:
        why = "Sending is in quarantine"
    else:
        why = f"{account} is paused" if kinds else ""
    return f"{why}: it waits, and is sent once that is over." if why else ""


_ENDED_BY = {"rejected": "Rejected", "withdrawn": "Withdrawn", "denied": "Denied"}


def handled_words(
    op: OperationFacts, given: list[ApprovalFacts], last: EventFacts | None, clock: Clock
) -> str:
    """What became of a row that waited when the page was drawn: "Approved by ben at 14:02"."""
    if op.state == AWAITING_APPROVAL:
        return f"Changed at {clock.minutes(op.entered_at)}" if op.stale_cause else ""
    if op.state == "expired":
        return f"Expired at {clock.minutes(op.expires_at)}: nobody decided in time"
    if op.state in _ENDED_BY and last is not None:
        return f"{_ENDED_BY[op.state]} by {actor_word(last.actor)} at {clock.minutes(last.at)}"
    if given:
        names = " and ".join(each.approver for each in given)
        return f"Approved by {names} at {clock.minutes(given[-1].at)}"
    return f"Moved on at {clock.minutes(op.entered_at)}"


_CAUSE_TITLES = {
    "order_changed": "Order changed",
    "expired": "Expired",
    "balance": "Balance used",
    "authority": "Rights or policy changed",
    "taken_back": "Taken back",
    "frozen": "Order frozen",
}


def cause_title(cause: str) -> str:
    """The heading of a group of stale approvals."""
    return _CAUSE_TITLES.get(cause, state_word(cause).capitalize())
