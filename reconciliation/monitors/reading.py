"""What a monitor reads: a number about a subject, and a sentence for whoever is woken by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from refunds.providers import registry


@dataclass(frozen=True, slots=True)
class Reading:
    """One value in its signal's unit. `subject` is an account, a payment, a person or nothing."""

    subject: str
    value: float
    says: str


def rows(sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of one reading statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def contract_seconds(fact: str) -> dict[str, list[Any]]:
    """Per account one duration of its contract: {"names": [...], "seconds": [...]}, unknown ones
    left out. `fact` is unknown_target_seconds, or the name of a Fact."""
    found: dict[str, int] = {}
    for name, account in registry.accounts().items():
        value = getattr(account.contract, fact)
        seconds = value if isinstance(value, int) else value.seconds
        if seconds is not None:
            found[name] = seconds
    return {"names": list(found), "seconds": list(found.values())}


def spell(seconds: float) -> str:
    """A duration for a sentence: "45 s", "12 min", "3 h", "2 days"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"
