"""The sentence under the pill, and what follows from a state for people."""

from __future__ import annotations

from datetime import datetime, timedelta

from refunds.domain import states
from refunds.domain.contract import ProviderContract, allowed
from refunds.domain.limits import Limits
from refunds.domain.sentences import STALE_CAUSES, Told, sentence
from review.presenters.words import span, state_word


def state_sentence(state: str, told: Told, now: datetime) -> str:
    """The same sentence as everywhere, and what a reader must not do while nobody knows."""
    text = sentence(state, told, now)
    return f"{text} Do not send it again." if state == states.UNKNOWN else text


def stale_words(cause: str) -> str:
    """What a lapse was caused by, for "The approval no longer applies: ..."."""
    return STALE_CAUSES.get(cause, state_word(cause))


def lost_answer(contract: ProviderContract | None, limits: Limits) -> str:
    """What happens if the answer to this send is lost: the contract says what can find out."""
    if contract is None:
        return "this account is no longer configured: only a person can find out"
    can = allowed(contract)
    if not can.can_settle:
        return "only a person can find out: this account has no lookup and no notices"
    if can.absence:
        return f"lookups can find it; absence can be proved after {span(_quiet(contract, limits))}"
    if can.success_by_lookup:
        return "lookups can find it; that it did not happen can never be proved by itself"
    if can.success_by_notice:
        return "only the provider’s own notice can tell; without one a person must find out"
    return "the same key may be sent again inside its window; otherwise a person must find out"


def _quiet(contract: ProviderContract, limits: Limits) -> timedelta:
    parts = (contract.idle_close, contract.flight_max, contract.lookup_lag)
    known = sum(fact.seconds or 0 for fact in parts)
    return timedelta(seconds=known + limits.send_deadline_seconds + 2 * limits.skew_seconds)


def only_a_person(contract: ProviderContract | None) -> bool:
    """Whether nothing but a person can ever settle a lost answer of this account."""
    return contract is None or not allowed(contract).can_settle


def what_may_be_done(contract: ProviderContract) -> list[str]:
    """What automation may do with this account, computed from its contract."""
    can = allowed(contract)
    said = [
        "finds a lost refund by lookup" if can.success_by_lookup else "has no lookup",
        "may send again with the same key" if can.resend_in_window else "never sends again",
        "can prove absence" if can.absence else "can never prove absence",
    ]
    if not can.can_settle:
        said.append("a lost answer needs a person")
    return said
