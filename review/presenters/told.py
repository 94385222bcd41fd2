"""What a rep is told about one refund: the words for the customer, and the facts beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from refunds.domain import states
from refunds.domain.judging import tier_words
from refunds.domain.say import REP_SEES, Said
from refunds.domain.sentences import STALE_CAUSES
from review.presenters.facts import CaseFacts
from review.presenters.words import Clock, short, state_word

# The words round a promise up to the minute; the fact beside them must be the same.
_TO_THE_MINUTE = timedelta(seconds=59, microseconds=999_999)
# What happens next without the rep, where the engine leaves it to a person.
_NEXT_STEP = {
    states.FAILED: "a person chooses another way to pay it back",
    states.RETURNED: "a person chooses another way to pay it back",
    states.DENIED: "correct it and propose again, or ask a support lead",
    states.EXPIRED: "it must be proposed again if it is still wanted",
    states.PENDING: "the customer must act; the payment company says how",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundFacts:
    """One refund as a rep may know it; instants are aware, empty or None means: not known."""

    id: object
    state: str
    amount_minor: int
    currency: str
    reason: str
    asked_at: datetime
    ends_at: datetime
    tier: int
    stale_cause: str
    provider_ref: str
    last_check_at: datetime | None
    next_check_at: datetime | None
    has_lookup: bool
    entered_by: str
    because: str
    case: CaseFacts | None
    case_ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One refund on the rep's page. `missed`: the promise that passed, as MC-64 says it.

    `facts`: label, value, and whether it is a reference that a rep may copy.
    """

    refund: RefundFacts
    said: Said
    facts: list[tuple[str, str, bool]]
    missed: str

    @property
    def ended(self) -> bool:
        return self.refund.state in states.ENDED

    @property
    def what(self) -> str:
        """ "Damaged item"."""
        return state_word(self.refund.reason).capitalize()


def told(refund: RefundFacts, said: Said, clock: Clock) -> Told:
    """The words with the facts that belong to them, in the order that the script names."""
    known = _facts(refund, clock)
    rows = [
        (REP_SEES[name], known[name], name == "case" or known[name] == refund.provider_ref)
        for name in said.rep_sees
        if known.get(name)
    ]
    if said.promise_at is not None:
        rows.insert(0, ("Next update by", clock.minutes(said.promise_at + _TO_THE_MINUTE), False))
    if "case" not in said.rep_sees or not refund.case_ref:
        rows.append(("Reference", f"op {short(refund.id)}", True))
    return Told(refund=refund, said=said, facts=rows, missed=_missed(said, clock))


def _missed(said: Said, clock: Clock) -> str:
    if said.missed_at is None:
        return ""
    return (
        f"We promised the customer news by {clock.minutes(said.missed_at)}. Tell them we are still"
        " checking and when we will write next."
    )


def _facts(refund: RefundFacts, clock: Clock) -> Mapping[str, str]:
    because = state_word(refund.because)
    ends = clock.minutes(refund.ends_at + _TO_THE_MINUTE)
    return {
        "decider": tier_words(refund.tier),
        "due": ends,
        "changed": STALE_CAUSES.get(refund.stale_cause, state_word(refund.stale_cause)),
        "provider_ref": refund.provider_ref or "none known yet",
        "last_check": clock.minutes(refund.last_check_at) if refund.last_check_at else "none yet",
        "next_check": _next_check(refund, clock),
        "owner": _owner(refund),
        "case": refund.case_ref,
        "difference": because or "a required field differs",
        "evidence": "the provider’s record matches ours on every required field",
        "cause": because,
        "next_step": _NEXT_STEP.get(refund.state, ""),
        "decided_by": refund.entered_by,
    }


def _next_check(refund: RefundFacts, clock: Clock) -> str:
    if not refund.has_lookup:
        return "none: only a person can find out"
    if refund.next_check_at is None:
        return "none planned"
    if refund.next_check_at <= clock.now:
        return "due now"
    return clock.minutes(refund.next_check_at)


def _owner(refund: RefundFacts) -> str:
    if refund.case is None:
        return "checked automatically" if refund.has_lookup else "nobody yet"
    return refund.case.owner or "nobody yet; it waits for operations"
