"""System checks of signing in: each wrong value has an id and a hint that says what to do."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from refunds.domain.roles import ROLES
from refunds.models import Person


@register(Tags.security)
def second_factor_is_on(**_: Any) -> list[CheckMessage]:
    if not settings.PRODUCTION or settings.SECOND_FACTOR:
        return []
    return [
        Error(
            "Second factors are off in production.",
            hint="Leave AFTERSEND_SECOND_FACTOR away, or set it to on.",
            id="aftersend.E020",
        )
    ]


@register(Tags.security)
def provider_is_usable(**_: Any) -> list[CheckMessage]:
    oidc = settings.OIDC
    if oidc is None:
        return []
    found: list[CheckMessage] = []
    unknown = sorted(set(oidc.roles.values()) - set(ROLES))
    if unknown:
        found.append(
            Error(
                f"AFTERSEND_OIDC maps groups to roles that do not exist: {', '.join(unknown)}.",
                hint=f"The roles are {', '.join(ROLES)}.",
                id="aftersend.E021",
            )
        )
    if settings.PRODUCTION and urlsplit(oidc.server_url).scheme != "https":
        found.append(
            Error(
                "AFTERSEND_OIDC names a provider without https.",
                hint="Give server_url as https://..., as its discovery document says.",
                id="aftersend.E022",
            )
        )
    return found


@register(Tags.database)
def nobody_is_superuser(databases: Any = None, **_: Any) -> list[CheckMessage]:
    if not settings.PRODUCTION or not databases:
        return []
    if not Person.objects.filter(is_superuser=True).exists():
        return []
    return [
        Error(
            "Somebody has Django's superuser flag, which no role here needs.",
            hint="Set is_superuser to false for everybody; roles are given on the page /people.",
            id="aftersend.E023",
        )
    ]
