"""Readings about our own machinery: clocks, sweeps, and what stops sending."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.core.cache import cache
from django.db.models import Max
from django.utils import timezone

from reconciliation.models import SignalRun
from reconciliation.monitors.reading import Reading, rows, spell
from refunds.providers import registry

# What a sender took for the start is read from its own clock, right after the database recorded
# the attempt with its own; the send deadline lies between them at most.
_WORKERS = """
SELECT e.actor, max(greatest(
         extract(epoch FROM t.recorded_at - v.started_at),
         extract(epoch FROM v.started_at - t.send_deadline)))::float8
FROM evidence v
JOIN attempt t ON t.operation_id = v.operation_id AND t.no = v.attempt_no
JOIN event e ON e.operation_id = v.operation_id AND e.seq = t.fence
WHERE v.kind = 'answer' AND v.stored_at > clock_timestamp() - interval '15 minutes'
GROUP BY e.actor"""

_PAUSED = """
SELECT name, pause_kind, pause_reason, extract(epoch FROM clock_timestamp() - paused_at)::float8
FROM provider_account WHERE pause_kind NOT IN ('', 'person')"""

_STOPPED = """
SELECT 'everything', reason, extract(epoch FROM clock_timestamp() - stopped_at)::float8
FROM sending_stop WHERE ended_at IS NULL
UNION ALL SELECT 'quarantine', reason, extract(epoch FROM clock_timestamp() - began_at)::float8
FROM quarantine WHERE lifted_at IS NULL"""

_ACCOUNTS_IN_USE = """
SELECT provider_account, count(*) FROM operation
WHERE due_at IS NOT NULL AND state IN ('authorized', 'submitting', 'pending', 'unknown')
GROUP BY provider_account"""


def database_clock() -> list[Reading]:
    """Seconds between this worker's clock and the database's, half the round trip taken off."""
    began, wall = time.monotonic(), timezone.now()
    ((theirs,),) = rows("SELECT clock_timestamp()")
    half = (time.monotonic() - began) / 2
    apart = abs((theirs - wall).total_seconds() - half)
    return [
        Reading(
            "", max(apart - half, 0.0), f"This worker and the database are {apart:.1f} s apart."
        )
    ]


def worker_clocks() -> list[Reading]:
    """Per sender of the last 15 minutes, seconds by which its clock cannot be the database's."""
    return [
        Reading(actor, max(apart, 0.0), f"The clock of {actor} is {apart:.1f} s off.")
        for actor, apart in rows(_WORKERS)
    ]


def ran(task: str, now: datetime) -> None:
    """Remember that a task of the schedule came to its end."""
    cache.set(_key(task), now, timeout=None)


def silent_tasks(scheduled: Mapping[str, float], now: datetime) -> list[Reading]:
    """Per task of the schedule (name to its interval in seconds), seconds beyond the interval
    since it last came to its end. What never ran counts from when it was first asked about."""
    found = []
    for task, interval in scheduled.items():
        at = cache.get_or_set(_key(task), now, timeout=None) or now
        late = (now - at).total_seconds() - interval
        says = f"{task} has not come to its end for {spell(max(late, 0) + interval)}."
        found.append(Reading(task, max(late, 0.0), says))
    return found


def _key(task: str) -> str:
    return f"schedule:ran-at:{task}"


def monitors_silent(names: Iterable[str], now: datetime) -> list[Reading]:
    """Seconds since the monitors ran; if they never did, since this was first asked."""
    last = SignalRun.objects.filter(name__in=list(names)).aggregate(at=Max("ran_at"))["at"]
    at = last or cache.get_or_set(_key("monitors"), now, timeout=None) or now
    seconds = max((now - at).total_seconds(), 0.0)
    return [Reading("", seconds, f"The monitors ran {spell(seconds)} ago.")]


def paused_accounts() -> list[Reading]:
    """Accounts that something else than a person paused, and for how many seconds."""
    return [
        Reading(name, seconds, f"{name} is paused ({kind.replace('_', ' ')}): {reason}")
        for name, kind, reason, seconds in rows(_PAUSED)
    ]


def stopped() -> list[Reading]:
    """The big stop and a quarantine, and for how many seconds."""
    return [Reading(what, seconds, reason) for what, reason, seconds in rows(_STOPPED)]


def accounts_gone() -> list[Reading]:
    """Accounts that are configured no more while refunds of theirs have not ended."""
    return [
        Reading(name, count, f"{count} refunds of {name} have not ended, and it is not configured.")
        for name, count in rows(_ACCOUNTS_IN_USE)
        if name not in registry.accounts()
    ]


def credentials() -> list[Reading]:
    """Accounts whose key has an end, and how many days are left; below 0 once it is over."""
    today = timezone.now().date()
    return [
        Reading(
            name,
            (account.credential_ends - today).days,
            f"The key of {name} ends on {account.credential_ends:%Y-%m-%d}.",
        )
        for name, account in registry.accounts().items()
        if account.credential_ends is not None
    ]
