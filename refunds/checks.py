"""System checks: each wrong value has an id and a sentence that says what to do."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from refunds import policies
from refunds.domain.limits import Limits
from refunds.models import Person
from refunds.providers import registry


@register()
def policy_is_readable(**_: Any) -> list[CheckMessage]:
    try:
        policies.current()
    except ImproperlyConfigured as error:
        return [
            Error(str(error), hint="Correct the policy file and start again.", id="aftersend.E001")
        ]
    return []


@register()
def providers_are_readable(**_: Any) -> list[CheckMessage]:
    try:
        registry.accounts()
    except ImproperlyConfigured as error:
        return [
            Error(
                str(error),
                hint="Correct the file that AFTERSEND_PROVIDERS names and start again.",
                id="aftersend.E002",
            )
        ]
    return []


@register()
def deadlines_fit(**_: Any) -> list[CheckMessage]:
    """The lease must outlive a call, or a living sender is taken for a dead one."""
    from django.conf import settings

    limits: Limits = settings.LIMITS
    if limits.lease_seconds > limits.send_deadline_seconds + limits.call_total_seconds:
        return []
    return [
        Error(
            "lease_seconds must be more than send_deadline_seconds and call_total_seconds together.",
            hint="Lengthen lease_seconds in AFTERSEND_LIMITS.",
            id="aftersend.E003",
        )
    ]


def require_trustworthy_database() -> None:
    """Refuse to start on a replica, with a role that can set the guards aside, or with a person
    whom Django's superuser flag puts above the roles.

    Raises ImproperlyConfigured. The embedded development server's role is its superuser; the
    caller leaves this out there.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_is_in_recovery(), rolsuper FROM pg_roles WHERE rolname = current_user"
        )
        replica, superuser = cursor.fetchone()
    if replica:
        raise ImproperlyConfigured(
            "DATABASE_URL points at a replica; every decision must read the primary."
        )
    if superuser:
        raise ImproperlyConfigured(
            "DATABASE_URL uses a superuser, who can switch the ledger's guards off."
            " Use a role that does not own the tables (docs/operating.md)."
        )
    if Person.objects.filter(is_superuser=True).exists():
        raise ImproperlyConfigured(
            "Somebody has Django's superuser flag. Set is_superuser to false for everybody;"
            " rights are given by roles, on the page /people (docs/operating.md)."
        )
