"""System checks of telling: each wrong value has an id and a hint that says what to do."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from reconciliation.outbox_receivers import wrong_settings


@register(Tags.security)
def receivers_are_usable(**_: Any) -> list[CheckMessage]:
    return [
        Error(wrong.says, hint=wrong.hint, id=f"aftersend.{wrong.id}") for wrong in wrong_settings()
    ]


@register(Tags.security)
def mail_is_encrypted(**_: Any) -> list[CheckMessage]:
    if not settings.PRODUCTION or not settings.WRITES_MAIL:
        return []
    options = settings.MAILERS["default"].get("OPTIONS", {})
    if options.get("use_tls") or options.get("use_ssl"):
        return []
    return [
        Error(
            "AFTERSEND_EMAIL_URL names a mail server without encryption.",
            hint="Begin it with smtps:// (port 465), or with smtp+tls:// (port 587).",
            id="aftersend.E035",
        )
    ]
