"""Bearer keys of agents: minted once, stored as an HMAC, looked up by prefix."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from refunds.domain.errors import Refusal
from refunds.models import Agent, Credential

SCOPES = ("refund:propose", "refund:read", "order:write")
LIFE_DAYS_MAX = 90
_FORM = re.compile(r"as_([A-Za-z0-9]{8})_([A-Za-z0-9_-]{43})", re.ASCII)
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
# A use is remembered to the minute, so that reading a status does not cost a write.
_USE_GRAIN = timedelta(minutes=1)


def _digest(secret: str) -> bytes:
    return hmac.new(settings.KEY_PEPPER.encode(), secret.encode(), hashlib.sha256).digest()


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
    if credential.revoked_at is not None or not credential.agent.active:
        raise _refused("credential_revoked", "The bearer key was revoked.")
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
        what_to_do="Ask an admin for a new key of this agent.",
    )
