"""The sentence under the pill, and what follows from a state for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from refunds.domain import states
from refunds.domain.contract import Accepted, ProviderContract, allowed
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
    """What happens if the answer to this send is lost: what the engine does, no promise."""
    if contract is None:
        return "this account is no longer configured: only a person can find out"
    if only_a_person(contract):
        return "only a person can find out: this account has no lookup"
    if not allowed(contract).success_by_lookup:
        return "the same key tells, when it is sent again; what that leaves open goes to a person"
    return "lookups can find it; what they do not find goes to a person"


def only_a_person(contract: ProviderContract | None) -> bool:
    """Whether nothing but a person can settle a lost answer of this account."""
    return contract is None or not allowed(contract).finds_out


def what_may_be_done(contract: ProviderContract, accepted: Iterable[Accepted] = ()) -> list[str]:
    """What automation does with a lost answer of this account, by its contract and by acceptance."""
    accepted = tuple(accepted)
    may, stated = allowed(contract, accepted=accepted), allowed(contract)
    if may.resend_always:
        again = "sends again under the same key, which lives for ever"
    elif may.resend_in_window:
        by = "" if stated.resend_in_window else ", by what two people accepted"
        again = f"sends again while the same key surely lives{by}"
    else:
        again = "never sends again by itself"
    if not may.success_by_lookup:
        return [
            "has no lookup",
            again,
            "a lost answer needs a person" if not may.finds_out else _REST,
        ]
    if may.again_after_absence:
        absent = "what is proved absent is sent again, or ended"
    elif may.absence:
        absent = "what is absent is ended, by what two people accepted, and not sent again"
    else:
        absent = "never concludes that nothing happened"
    return ["finds a lost refund by lookup", again, absent, _REST]


_REST = "what that leaves open goes to a person"
