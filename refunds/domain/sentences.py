"""The one sentence under an operation's state, the same on pages, in the API and over MCP. Pure.

It never says more than is known: a state in which money may have moved says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from refunds.domain import states


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a sentence may name. Instants are aware; empty or None means: not known.

    `entered_at`, `entered_by`, `event` and `because` are of the move into the state as it is;
    `sent_at` is when the last attempt was recorded; `approved_by` are those of this round;
    `only_people`: the account has nothing by which we could find out ourselves.
    """

    asked_by: str = ""
    approved_by: str = ""
    order_version: int | None = None
    expires_at: datetime | None = None
    sent_at: datetime | None = None
    entered_at: datetime | None = None
    entered_by: str = ""
    event: str = ""
    because: str = ""
    stale_cause: str = ""
    needs_customer: bool = False
    only_people: bool = False
    provider_refund_ref: str = ""
    failed_checks: tuple[str, ...] = ()


# What a lapse was caused by, in words that finish "The approval no longer applies: …".
STALE_CAUSES: Final = {
    "order_changed": "the order changed",
    "expired": "it ran out",
    "balance": "too little is left to refund",
    "authority": "a person or agent behind it lost the right to it",
    "taken_back": "it was taken back",
    "frozen": "the order is frozen by a person",
}


def sentence(state: str, told: Told, now: datetime) -> str:
    """One or two plain sentences about where the operation stands at `now`, in the zone of it."""
    return _BY_STATE[state](told, now)


def clock(at: datetime | None, now: datetime) -> str:
    """An instant for people in the zone of `now`: "14:02:11 UTC", with the date before it unless
    that is today."""
    if at is None:
        return "an unknown time"
    at = at.astimezone(now.tzinfo)
    if at.date() == now.date():
        return f"{at:%H:%M:%S} {at.tzname()}"
    return f"{at.day} {at:%b %Y %H:%M:%S} {at.tzname()}"


def _nothing(told: Told) -> str:
    """What is true of the money before an end without any: an earlier attempt is named."""
    return "What was sent before is proven not executed." if told.sent_at else "Nothing was sent."


def _waiting(told: Told, now: datetime) -> str:
    if told.stale_cause == "frozen":
        return (
            "The order is frozen by a person: nothing on it can be approved or sent until that is"
            f" lifted. {_nothing(told)}"
        )
    if told.approved_by:
        return (
            f"Approved by {told.approved_by}; another person must approve it too. {_nothing(told)}"
        )
    if told.stale_cause:
        cause = STALE_CAUSES.get(told.stale_cause, told.stale_cause.replace("_", " "))
        return f"The approval no longer applies: {cause}. {_nothing(told)}"
    return f"Asked for by {told.asked_by}. Nothing has been approved or sent."


def _authorized(told: Told, now: datetime) -> str:
    who = told.approved_by or "policy"
    ends = f"Valid until {clock(told.expires_at, now)}."
    if told.sent_at:
        return (
            f"Approved by {who}. Sent at {clock(told.sent_at, now)} and proven not executed;"
            f" it will be sent again. {ends}"
        )
    return f"Approved by {who} for order version {told.order_version}. {ends} Not sent yet."


def _submitting(told: Told, now: datetime) -> str:
    return (
        f"Being sent since {clock(told.sent_at or told.entered_at, now)}."
        " Until the answer is in, treat it as possibly done."
    )


def _pending(told: Told, now: datetime) -> str:
    ref = f" (id {told.provider_refund_ref})" if told.provider_refund_ref else ""
    at = clock(told.entered_at, now)
    if told.needs_customer:
        return f"The provider accepted it at {at} and needs something from the customer{ref}."
    return f"The provider accepted it at {at} and is working on it{ref}."


def _unknown(told: Told, now: datetime) -> str:
    who = "Only a person can find out, and is asked to." if told.only_people else "We are checking."
    doubt = f"It may or may not have happened. {who}"
    if told.event in ("contradicted", "ruling_contradicted"):
        return f"Evidence of {clock(told.entered_at, now)} contradicts how this had ended. {doubt}"
    if told.sent_at is None:
        return f"Another system sent it and no answer is known. {doubt}"
    return f"Sent at {clock(told.sent_at, now)}; no answer we can trust. {doubt}"


def _succeeded(told: Told, now: datetime) -> str:
    at = clock(told.entered_at, now)
    if told.event == "ruled_happened":
        return f"People ruled on the evidence that it happened ({told.entered_by}, {at})."
    return f"The provider's record matches ours on every required field, checked {at}."


def _mismatched(told: Told, now: datetime) -> str:
    at = clock(told.entered_at, now)
    why = f": {told.because.rstrip('.')}" if told.because else ""
    return (
        "Money moved, but not as asked: two people ruled on the evidence that the provider's refund"
        f" differs ({told.entered_by}, {at}){why}."
    )


def _returned(told: Told, now: datetime) -> str:
    why = f" ({told.because.rstrip('.')})" if told.because else ""
    return (
        f"It had happened, and the money came back on {clock(told.entered_at, now)}{why}."
        " The customer still expects it."
    )


def _failed(told: Told, now: datetime) -> str:
    at = clock(told.entered_at, now)
    if told.event == "proved_not_executed":
        return f"No money moved: the provider's records show that it was never executed, {at}."
    if told.event == "ruled_not_happened":
        return f"Two people ruled on the evidence that no money moved ({told.entered_by}, {at})."
    why = f" ({told.because.rstrip('.')})" if told.because else ""
    return f"The provider says no money moved{why}, checked {at}."


def _denied(told: Told, now: datetime) -> str:
    return f"Policy refused it: {', '.join(told.failed_checks)}. Nothing was sent."


def _rejected(told: Told, now: datetime) -> str:
    why = f": {told.because.rstrip('.')}" if told.because else ""
    return f"Rejected by {told.entered_by}{why}. {_nothing(told)}"


def _withdrawn(told: Told, now: datetime) -> str:
    return f"Withdrawn by {told.entered_by}. {_nothing(told)}"


def _expired(told: Told, now: datetime) -> str:
    return f"Nobody decided by {clock(told.expires_at, now)}. {_nothing(told)}"


_BY_STATE: Final[dict[str, Callable[[Told, datetime], str]]] = {
    states.PROPOSED: _waiting,
    states.AWAITING_APPROVAL: _waiting,
    states.AUTHORIZED: _authorized,
    states.SUBMITTING: _submitting,
    states.PENDING: _pending,
    states.UNKNOWN: _unknown,
    states.SUCCEEDED: _succeeded,
    states.MISMATCHED: _mismatched,
    states.RETURNED: _returned,
    states.FAILED: _failed,
    states.DENIED: _denied,
    states.REJECTED: _rejected,
    states.WITHDRAWN: _withdrawn,
    states.EXPIRED: _expired,
}
