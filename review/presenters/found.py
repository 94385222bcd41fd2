"""Why a notice waits and what would release it, and how far a list was read, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from review.presenters.then_and_now import stated
from review.presenters.words import count_of, state_word

_OUTCOMES = {
    "looked_up": "a lookup that began after it shows what it told of",
    "proof": "it was taken as proof: this account cannot be asked",
    "outside": "it is a refund made elsewhere, and counts as such",
    "nothing": "it told of no refund; the account’s lists were read",
    "foreign": "it is of another mode or account, and changed nothing",
    "odd": "it came under an earlier notice’s id with other content, and changed nothing",
    "given_up": "nothing explained it in 30 days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeFacts:
    """One notice; `told` is what it says of a refund: ref, amount_minor, currency, status."""

    told: dict[str, Any]
    has_operation: bool
    waits_for_lookup: bool
    case_ref: str
    tries: int
    failures: int
    outcome: str


def tells(notice: NoticeFacts) -> str:
    """ "rf_0010, 79.00 USD, succeeded"."""
    told = notice.told
    if not told.get("ref"):
        return "a change of a payment, and no refund"
    amount = stated(told.get("amount_minor"), told.get("currency"))
    return f"{told['ref']}, {amount}, {state_word(str(told.get('provider_status')))}"


def why_it_waits(notice: NoticeFacts) -> str:
    if notice.failures:
        return f"Applying it failed {count_of(notice.failures, 'time')}."
    if notice.has_operation and notice.waits_for_lookup:
        return "It is a hint only: no lookup that began after it has shown what it tells of."
    if notice.has_operation:
        return "It is matched, and is being applied."
    if notice.tries == 0:
        return "It has just come; it is matched within seconds."
    return "No operation of ours has its marker or holds its reference."


def what_releases_it(notice: NoticeFacts) -> str:
    if notice.has_operation:
        return "The next lookup of its operation that can tell."
    asked = f", or what a person rules on {notice.case_ref}" if notice.case_ref else ""
    return (
        "An answer, a list or an order that ties its refund to something we know"
        f"{asked}. It is matched again by itself, for 30 days."
    )


def what_became(notice: NoticeFacts) -> str:
    return _OUTCOMES.get(notice.outcome, state_word(notice.outcome)).capitalize() + "."
