"""What the pages about agents show: each with its keys, and what came of its proposals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from refunds.api.schemas import WAIT_SECONDS_MAX
from refunds.credentials import life_days
from refunds.domain.money import display
from refunds.models import Agent, Credential
from refunds.providers import registry
from refunds.queries import agents as queries
from review import intent
from review.access import Viewer
from review.intent import Hidden
from review.models import AgentAct
from review.presenters.words import Clock

DAYS: Final = 30
_ACTS_SHOWN_MAX: Final = 50
# What an act keeps as an instant, and what a reader calls it.
_INSTANTS: Final = {"expires_at": "ends", "ends_at": "old one ends"}
# What the page offers; any length up to 7 days is taken. Seconds, with their words.
OVERLAPS: Final = (
    (0, "none: the old key ends now"),
    (600, "10 minutes"),
    (3_600, "1 hour"),
    (86_400, "1 day"),
    (604_800, "7 days"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One key: `ended` is empty while it works."""

    key: Credential
    ended: str
    ends_soon: bool
    not_stored: bool
    form: Hidden
    life_days: int
    revoke_within_seconds: int = WAIT_SECONDS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One agent of the list."""

    agent: Agent
    keys: list[KeyRow]
    tally: queries.Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One agent."""

    row: Row
    form: Hidden
    waiting: int
    acts: list[tuple[AgentAct, str]]


def rows(who: Viewer, *, everybodys: bool) -> list[Row]:
    """Every agent, or the reader's own."""
    found = list(queries.agents(owned_by=None if everybodys else who.person))
    return _rows(found, who.clock.now)


def page(agent: Agent, who: Viewer) -> Page:
    acts = AgentAct.objects.filter(agent=agent).select_related("person").order_by("-pk")
    return Page(
        row=_rows([agent], who.clock.now)[0],
        form=intent.drawn(version=0, shown_digest=agent_digest(agent)),
        waiting=queries.waiting_count(agent),
        acts=[(act, _words(act, who.clock)) for act in acts[:_ACTS_SHOWN_MAX]],
    )


def _words(act: AgentAct, clock: Clock) -> str:
    """What an act changed: "was plain-main, plain-blind; now plain-main"."""
    return "; ".join(
        f"{_INSTANTS.get(name, name).replace('_', ' ')} {_value(name, value, clock)}"
        for name, value in act.detail.items()
    )


def _value(name: str, value: object, clock: Clock) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if name not in _INSTANTS:
        return str(value)
    at = datetime.fromisoformat(str(value))
    return f"{clock.minutes(at)} {clock.zone_at(at)}"


def _rows(found: list[Agent], now: datetime) -> list[Row]:
    ids = [agent.pk for agent in found]
    tallies = queries.tallies(ids, now - timedelta(days=DAYS))
    # Keys that no page has made, such as those of a demo, were never shown here.
    unsaid = _said("key_created", ids) - _said("key_stored", ids)
    return [
        Row(
            agent=agent,
            keys=[
                _key_row(key, now, not_stored=key.prefix in unsaid)
                for key in agent.credentials.all()
            ],
            tally=tallies.get(agent.pk, queries.Tally()),
        )
        for agent in found
    ]


def _said(act: str, agent_ids: list[int]) -> set[str]:
    said = AgentAct.objects.filter(agent__in=agent_ids, act=act)
    return set(said.values_list("key_prefix", flat=True))


def _key_row(key: Credential, now: datetime, *, not_stored: bool) -> KeyRow:
    ended = "revoked" if key.revoked_at else "expired" if key.expires_at <= now else ""
    return KeyRow(
        key=key,
        ended=ended,
        ends_soon=not ended and key.expires_at - now <= timedelta(days=7),
        not_stored=not_stored and not ended,
        form=intent.drawn(version=0, shown_digest=key_digest(key)),
        life_days=life_days(key),
    )


def agent_digest(agent: Agent) -> str:
    """What a form about the agent stands on."""
    return intent.digest_of(agent.name, agent.active, sorted(agent.accounts))


def key_digest(key: Credential) -> str:
    """What a form about the key stands on."""
    revoked = key.revoked_at.isoformat() if key.revoked_at else ""
    return intent.digest_of(key.prefix, key.expires_at.isoformat(), revoked)


def in_each(minor: int, currencies: Collection[str]) -> str:
    """A limit in minor units as it reads in each currency: "200.00 EUR or 20000 JPY"."""
    return " or ".join(display(minor, code) for code in sorted(currencies))


def accounts(ticked: Collection[str]) -> list[tuple[str, bool]]:
    """Every account, with whether it is ticked."""
    return [(name, name in ticked) for name in sorted(registry.accounts())]
