"""The sentence under the pill, and what follows from a state for people."""

from __future__ import annotations

from datetime import datetime

from refunds.domain import states
from refunds.domain.contract import ProviderContract, allowed
from refunds.domain.sentences import STALE_CAUSES, Told, sentence
from review.presenters.words import state_word


def state_sentence(state: str, told: Told, now: datetime) -> str:
    """The same sentence as everywhere, and what a reader must not do while nobody knows."""
    text = sentence(state, told, now)
    return f"{text} Do not send it again." if state == states.UNKNOWN else text


def stale_words(cause: str) -> str:
    """What a lapse was caused by, for "The approval no longer applies: ..."."""
    return STALE_CAUSES.get(cause, state_word(cause))


def lost_answer(contract: ProviderContract | None) -> str:
    """What happens if the answer to this send is lost: what the engine does today, no promise."""
    if contract is None:
        return "this account is no longer configured: only a person can find out"
    if only_a_person(contract):
        return "only a person can find out: this account has no lookup"
    return "lookups can find it; what they do not find goes to a person"


def only_a_person(contract: ProviderContract | None) -> bool:
    """Whether nothing but a person can settle a lost answer of this account."""
    return contract is None or not allowed(contract).success_by_lookup


def what_may_be_done(contract: ProviderContract) -> list[str]:
    """What automation does with a lost answer of this account."""
    if only_a_person(contract):
        return ["has no lookup", "never sends again by itself", "a lost answer needs a person"]
    return [
        "finds a lost refund by lookup",
        "never sends again by itself",
        "what is not found goes to a person",
    ]
