"""Accepted figures of an account as a reader sees them, with what each of them may do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from refunds import accepting
from refunds.domain.contract import ProviderContract
from refunds.models import AcceptedFact
from review import intent, roles
from review.access import Viewer
from review.intent import Hidden
from review.presenters.words import span

WORDS = {"flight_max": "Latest execution, D", "lookup_lag": "Delay of lookups, V"}
SCOPES = {"resend": "sending again", "absence": "ending as not executed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `standing`: proposed, in force, run out or withdrawn."""

    fact: AcceptedFact
    word: str
    scope: str
    value: str
    standing: str
    if_false: str
    form: Hidden
    may_confirm: bool
    may_withdraw: bool


def rows(account: str, who: Viewer) -> list[Row]:
    """Every figure of the account, the newest first."""
    may = who.may(roles.ACCEPT_FACT)
    found = []
    for each in accepting.listed(account):
        standing = _standing(each, who)
        is_open = standing in ("proposed", "in force")
        found.append(
            Row(
                fact=each,
                word=WORDS[each.fact],
                scope=SCOPES[each.scope],
                value=span(timedelta(seconds=each.seconds)),
                standing=standing,
                if_false=accepting.if_false(each) if is_open else "",
                form=intent.drawn(
                    version=int(each.confirmed_at is not None), shown_digest=digest(each)
                ),
                may_confirm=may and standing == "proposed" and each.proposed_by_id != who.person.pk,
                may_withdraw=may and is_open,
            )
        )
    return found


def _standing(fact: AcceptedFact, who: Viewer) -> str:
    if fact.withdrawn_at is not None:
        return "withdrawn"
    if fact.valid_until <= who.clock.now:
        return "run out"
    return "in force" if fact.confirmed_at is not None else "proposed"


def digest(fact: AcceptedFact) -> str:
    """What the second person says yes to."""
    return intent.digest_of(fact.pk, fact.account, fact.fact, fact.seconds, fact.scope, fact.reason)


def acceptable(contract: ProviderContract) -> list[tuple[str, str]]:
    """The facts that this provider does not state and that two people may accept."""
    return [(name, word) for name, word in WORDS.items() if getattr(contract, name).seconds is None]
