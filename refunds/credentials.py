"""Bearer keys of agents: minted once, stored as an HMAC, looked up by prefix; and the agents
that hold them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from refunds.domain.errors import Refusal
from refunds.models import Agent, Credential, Person
from refunds.providers import registry

SCOPES: Final = ("refund:propose", "refund:read", "order:write")
LIFE_DAYS_MAX: Final = 90
OVERLAP_MAX: Final = timedelta(days=7)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?", re.ASCII)
_FORM = re.compile(r"as_([A-Za-z0-9]{8})_([A-Za-z0-9_-]{43})", re.ASCII)
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
# A use is remembered to the minute, so that reading a status does not cost a write.
_USE_GRAIN = timedelta(minutes=1)


def _digest(secret: str) -> bytes:
    return hmac.new(settings.KEY_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


# Keys


def mint(agent: Agent, *, scopes: list[str], days: int = LIFE_DAYS_MAX) -> tuple[Credential, str]:
    """A new key and its text, which is shown once and stored nowhere.

    Raises Refusal for unknown scopes, for feeding and proposing on one key, or too long a life.
    """
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise Refusal(
            "scope_unknown",
            f"Unknown or missing scopes: {', '.join(sorted(unknown)) or 'none given'}.",
            what_to_do=f"Use: {', '.join(SCOPES)}.",
            field="scopes",
        )
    if {"order:write", "refund:propose"} <= set(scopes):
        raise Refusal(
            "scopes_never_together",
            "One key may not both feed order facts and propose refunds.",
            what_to_do="Mint two keys.",
            field="scopes",
        )
    if not 1 <= days <= LIFE_DAYS_MAX:
        raise Refusal(
            "life_too_long",
            f"A key lives 1 to {LIFE_DAYS_MAX} days.",
            what_to_do="Rotate it before it ends; rotation keeps the agent's identity.",
            field="days",
        )
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    secret = secrets.token_urlsafe(32)
    credential = Credential.objects.create(
        agent=agent,
        prefix=prefix,
        digest=_digest(secret),
        scopes=sorted(scopes),
        expires_at=timezone.now() + timedelta(days=days),
    )
    return credential, f"as_{prefix}_{secret}"


def rotate(prefix: str, *, overlap: timedelta) -> tuple[Credential, str]:
    """A new key with the scopes and the length of life of an old one, which ends after `overlap`
    (0 to 7 days).

    Raises Refusal for a key that has ended, or too long an overlap. The old key never lives
    longer than it would have.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise Refusal(
            "overlap_too_long",
            f"Two keys overlap for at most {OVERLAP_MAX.days} days.",
            what_to_do="Choose a shorter overlap.",
            field="overlap",
        )
    with transaction.atomic():
        old = Credential.objects.select_for_update().select_related("agent").get(prefix=prefix)
        now = timezone.now()
        if old.revoked_at is not None or old.expires_at <= now:
            raise Refusal(
                "key_ended",
                f"The key {prefix} has ended; there is nothing to rotate.",
                status=409,
                what_to_do="Create a new key.",
            )
        new = mint(old.agent, scopes=old.scopes, days=life_days(old))
        old.expires_at = min(old.expires_at, now + overlap)
        old.save(update_fields=["expires_at"])
    return new


def life_days(key: Credential) -> int:
    """For how many days a key was made, to the nearest: two clocks stamped its life."""
    days = (key.expires_at - key.created_at + timedelta(hours=12)) // timedelta(days=1)
    return min(max(days, 1), LIFE_DAYS_MAX)


def authenticate(bearer: str) -> Credential:
    """The living credential of a bearer text.

    Raises Refusal 401 credential_invalid, credential_revoked or credential_expired. The agent and
    its owner must be active.
    """
    form = _FORM.fullmatch(bearer)
    credential = (
        Credential.objects.select_related("agent__owner").filter(prefix=form[1]).first()
        if form
        else None
    )
    given = _digest(form[2]) if form else b""
    if credential is None or not hmac.compare_digest(bytes(credential.digest), given):
        raise _refused("credential_invalid", "The bearer key is not one of ours.")
    if credential.revoked_at is not None:
        raise _refused("credential_revoked", "The bearer key was revoked.")
    if not credential.agent.active:
        raise _refused("credential_revoked", "This agent is paused: none of its keys work.")
    if not credential.agent.owner.is_active:
        raise _refused("credential_revoked", "The owner of this agent is not active any more.")
    now = timezone.now()
    if credential.expires_at <= now:
        raise _refused("credential_expired", "The bearer key has expired.")
    if credential.last_used_at is None or now - credential.last_used_at > _USE_GRAIN:
        Credential.objects.filter(pk=credential.pk).update(last_used_at=now)
    return credential


def revoke(credential: Credential) -> None:
    """End a key now; what its agent proposed stays for people to decide."""
    Credential.objects.filter(pk=credential.pk, revoked_at=None).update(revoked_at=timezone.now())


def _refused(code: str, detail: str) -> Refusal:
    return Refusal(
        code,
        detail,
        status=401,
        what_to_do="Ask an admin for a new key, or to take the agent up again if it was paused.",
    )


# Agents


def create_agent(name: str, *, owner: str, accounts: Collection[str]) -> Agent:
    """A new agent without a key. Raises Refusal for an odd or taken name, an owner who is no
    active person, or accounts that are none of ours."""
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise Refusal(
            "field_format",
            "A name has 1 to 64 letters, digits, spaces, dots, hyphens or underscores.",
            what_to_do="Choose a name that people will recognise in the queue.",
            field="name",
        )
    known = Person.objects.filter(username=owner.strip(), is_active=True)
    person = known.first() if owner.isprintable() else None
    if person is None:
        raise Refusal(
            "owner_unknown",
            "The owner is not an active person here.",
            what_to_do="Give the sign-in name of the person who answers for this agent.",
            field="owner",
        )
    chosen = _accounts(accounts)
    with transaction.atomic():
        agent, first = Agent.objects.get_or_create(
            name=name, defaults={"owner": person, "accounts": chosen}
        )
    if not first:
        raise Refusal(
            "name_taken",
            f"There is an agent {name} already.",
            status=409,
            what_to_do="Choose another name, or open that agent.",
            field="name",
        )
    return agent


def set_accounts(agent: Agent, accounts: Collection[str]) -> None:
    """The accounts that an agent may propose for, from its next call on."""
    agent.accounts = _accounts(accounts)
    agent.save(update_fields=["accounts"])


def set_active(agent: Agent, *, active: bool) -> None:
    """Pause an agent, or let it go on: all its keys at once, from its next call on."""
    agent.active = active
    agent.save(update_fields=["active"])


def _accounts(chosen: Collection[str]) -> list[str]:
    unknown = set(chosen) - set(registry.accounts())
    if unknown or not chosen:
        raise Refusal(
            "account_unknown",
            f"Not accounts of ours: {', '.join(sorted(unknown))}."
            if unknown
            else "An agent needs one account or more.",
            what_to_do="Tick the accounts whose payments it may ask to refund.",
            field="accounts",
        )
    return sorted(set(chosen))
