"""What an admin does to agents and keys, each act with the row that says who did it.

Every function runs inside the transaction of its press and raises Refusal for what may not be.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from refunds import credentials
from refunds.domain.errors import Refusal
from refunds.models import Agent, Credential, Person
from review.models import AgentAct


def create(by: Person, *, name: str, owner: str, accounts: list[str]) -> Agent:
    agent = credentials.create_agent(name, owner=owner, accounts=accounts)
    _store(agent, by, "agent_created", owner=agent.owner.username, accounts=agent.accounts)
    return agent


def change_accounts(agent: Agent, by: Person, accounts: list[str]) -> None:
    before = agent.accounts
    credentials.set_accounts(agent, accounts)
    _store(agent, by, "accounts_changed", was=before, now=agent.accounts)


def set_active(agent: Agent, by: Person, *, active: bool) -> None:
    credentials.set_active(agent, active=active)
    _store(agent, by, "agent_resumed" if active else "agent_paused")


def mint(agent: Agent, by: Person, *, scopes: list[str], days: int) -> tuple[Credential, str]:
    """The new key and its text, which is for one screen only."""
    key, text = credentials.mint(agent, scopes=scopes, days=days)
    _store(agent, by, "key_created", key, scopes=key.scopes, expires_at=_when(key))
    return key, text


def rotate(old: Credential, by: Person, *, overlap: timedelta) -> tuple[Credential, str]:
    """The new key and its text; `old` ends after the overlap."""
    key, text = credentials.rotate(old.prefix, overlap=overlap)
    old.refresh_from_db()
    _store(old.agent, by, "key_rotated", old, new=key.prefix, ends_at=_when(old))
    _store(old.agent, by, "key_created", key, scopes=key.scopes, expires_at=_when(key))
    return key, text


def revoke(key: Credential, by: Person, *, typed_name: str) -> None:
    """End a key now; `typed_name` is the agent's name, as proof that this one is meant."""
    if typed_name.strip() != key.agent.name:
        raise Refusal(
            "name_differs",
            "Not recorded. The name you typed is not the name of this agent.",
            what_to_do=f"Type {key.agent.name} to revoke its key {key.prefix}.",
            field="agent_name",
        )
    if key.revoked_at is not None:
        raise Refusal(
            "key_ended",
            f"Not recorded. The key {key.prefix} was revoked before.",
            status=409,
            what_to_do="Nothing is left to do.",
        )
    credentials.revoke(key)
    _store(key.agent, by, "key_revoked", key)


def say_stored(key: Credential, by: Person, *, ticked: bool) -> None:
    """The admin says that the key's text is stored where the agent reads it."""
    if not ticked:
        raise Refusal(
            "not_ticked",
            "Not recorded. Tick that the key is stored; it is never shown again.",
            what_to_do=f"If it is lost, revoke {key.prefix} and create another.",
            field="stored",
        )
    _store(key.agent, by, "key_stored", key)


def _when(key: Credential) -> str:
    return key.expires_at.isoformat(timespec="seconds")


def _store(
    agent: Agent, by: Person, act: str, key: Credential | None = None, **detail: Any
) -> None:
    AgentAct.objects.create(
        agent=agent, person=by, act=act, key_prefix=key.prefix if key else "", detail=detail
    )
