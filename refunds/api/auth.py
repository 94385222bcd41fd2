"""Who calls: a bearer key with scopes, the accounts of its agent, and a pace."""

from __future__ import annotations

import time

import structlog
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from ninja.security.http import HttpAuthBase

from refunds import credentials
from refunds.domain.errors import Refusal
from refunds.models import Credential

log = structlog.get_logger(__name__)


class AgentRequest(HttpRequest):
    """A request that passed `Bearer`."""

    auth: Credential


class Bearer(HttpAuthBase):
    """`Authorization: Bearer as_…` with one scope; the same description for every scope."""

    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Credential:
        """The living credential. Raises Refusal 401, 403 scope_missing or 429 rate_limited."""
        credential = credentials.authenticate(bearer_of(request.headers.get("Authorization", "")))
        keep_pace(credential)
        require_scope(credential, self.scope)
        return credential


def require_scope(credential: Credential, scope: str) -> None:
    """Raises Refusal 403 scope_missing."""
    if scope not in credential.scopes:
        raise Refusal(
            "scope_missing",
            f"This key does not have the scope {scope}.",
            status=403,
            what_to_do="Use a key with that scope; an admin can mint one.",
        )


def bearer_of(header: str) -> str:
    """The key in an Authorization header. Raises Refusal 401 where there is none."""
    if not header:
        raise Refusal(
            "credential_missing",
            "There is no Authorization header.",
            status=401,
            what_to_do="Send `Authorization: Bearer as_…` with the key of your agent.",
        )
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(
            "credential_invalid",
            "The Authorization header is not a bearer key.",
            status=401,
            what_to_do="Send `Authorization: Bearer as_…` with the key of your agent.",
        )
    return token.strip()


def keep_pace(credential: Credential) -> None:
    """Count one call of this key. Raises Refusal 429 rate_limited."""
    now = int(time.time())
    allowed = settings.LIMITS.calls_per_minute_max
    if _calls_this_minute(credential, now // 60) > allowed:
        raise Refusal(
            "rate_limited",
            f"This key may call {allowed} times a minute.",
            status=429,
            what_to_do="Wait for retry_after_seconds, then repeat the very same call; asking more"
            " often changes nothing.",
            facts={"retry_after_seconds": 60 - now % 60},
        )


def _calls_this_minute(credential: Credential, minute: int) -> int:
    key = f"api-calls:{credential.pk}:{minute}"
    try:
        cache.add(key, 0, timeout=120)
        return cache.incr(key)
    except Exception as error:
        # Whatever the cache's library raises: the pace protects our machine, while the limits
        # that protect money are policy checks in the database. So a lost cache stops nobody.
        log.warning("pace_not_counted", error=repr(error))
        return 0
