"""Readings about the database's standbys, as the database itself tells them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.core.cache import cache
from django.utils import timezone

from reconciliation.monitors.reading import Reading, rows, spell

_SINCE: Final = "standby:missing-since"
_STANDBYS: Final = """
SELECT application_name, state, sync_state, extract(epoch FROM replay_lag)::float8
FROM pg_stat_replication"""


class Standby(NamedTuple):
    """One connection of a standby; `state` is None where our role may not see it."""

    name: str
    state: str | None
    sync_state: str | None
    lag_seconds: float | None


class CannotSee(Exception):
    """There are standbys, and our role may not read how they stand."""


def missing() -> list[Reading]:
    """Seconds since no synchronous standby is there; nothing where the database names none.

    Raises CannotSee where it names some and nobody told us how they stand.
    """
    ((named,),) = rows("SHOW synchronous_standby_names")
    now = timezone.now()
    if not is_missing(named, [Standby(*each) for each in rows(_STANDBYS)]):
        cache.delete(_SINCE)
        return []
    since: datetime = cache.get_or_set(_SINCE, now, timeout=None) or now
    seconds = (now - since).total_seconds()
    return [Reading("", seconds, f"No synchronous standby for {spell(seconds)}; named: {named}.")]


def lag() -> list[Reading]:
    """Per standby, seconds by which it is behind."""
    return [
        Reading(each.name, each.lag_seconds, f"{each.name} is {spell(each.lag_seconds)} behind.")
        for each in (Standby(*row) for row in rows(_STANDBYS))
        if each.lag_seconds is not None
    ]


def is_missing(named: str, standbys: Sequence[Standby]) -> bool:
    """Whether the settings name synchronous standbys and none of them follows. Raises CannotSee."""
    if not named.strip():
        return False
    if any(each.state is None for each in standbys):
        raise CannotSee("grant pg_read_all_stats to the role of the application")
    return not any(
        each.state == "streaming" and each.sync_state in ("sync", "quorum") for each in standbys
    )
