"""Asking every monitor, and remembering that it was asked: a signal without data is an alarm."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import structlog
from django.db import transaction

from reconciliation import alarms
from reconciliation.models import SignalRun
from reconciliation.monitors import machinery
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signal import Monitor
from reconciliation.monitors.signals_of_machinery import (
    MONITORS_SILENT,
    NO_DATA,
    SCHEDULE_SILENT,
)
from reconciliation.monitors.table import MONITORS

log = structlog.get_logger(__name__)
_NAMES = [each.name for each in MONITORS]


def read_all(scheduled: Mapping[str, float], now: datetime) -> int:
    """Read every monitor and store what fires; returns how many alarms began.

    `scheduled`: tasks of the schedule with their intervals in seconds.
    """
    began = sum(_read(each, now) for each in MONITORS)
    began += len(alarms.observe(SCHEDULE_SILENT, machinery.silent_tasks(scheduled, now), now))
    return began + len(alarms.observe(NO_DATA, _without_data(now), now))


def watch(now: datetime) -> int:
    """Whether the monitors ran at all; asked by a task of its own."""
    return len(alarms.observe(MONITORS_SILENT, machinery.monitors_silent(_NAMES, now), now))


def _read(monitor: Monitor, now: datetime) -> int:
    try:
        with transaction.atomic():
            return len(alarms.observe(monitor, monitor.read(), now))
    except Exception as error:
        # One monitor that cannot be read must not silence the others: it is an alarm instead.
        log.exception("monitor_failed", monitor=monitor.name)
        _failed(monitor.name, error, now)
        return 0


def _failed(name: str, error: Exception, now: datetime) -> None:
    run, _ = SignalRun.objects.get_or_create(name=name, defaults={"ran_at": now})
    run.ran_at, run.error = now, f"{type(error).__name__}: {error}"[:300]
    run.failed_since = run.failed_since or now
    run.save()


def _without_data(now: datetime) -> list[Reading]:
    return [
        Reading(
            each.name,
            (now - each.failed_since).total_seconds(),
            f"{each.name} cannot be computed: {each.error}",
        )
        for each in SignalRun.objects.exclude(failed_since=None)
        if each.failed_since is not None
    ]
