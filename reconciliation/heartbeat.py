"""When the checker last ran: an empty queue with a dead checker must not read as all clear."""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache

_KEY = "reconciliation:sweep-ran-at"


def beat(now: datetime) -> None:
    """Remember that the sweep for due lookups ran."""
    cache.set(_KEY, now, timeout=None)


def last_beat() -> datetime | None:
    """The last run of the sweep, or None when none is known."""
    at = cache.get(_KEY)
    return at if isinstance(at, datetime) else None
