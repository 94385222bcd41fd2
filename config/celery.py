"""The Celery app: two queues, a static schedule, and the bell that `doorbell` rings."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from celery import Celery
from celery.signals import (
    celeryd_after_setup,
    task_postrun,
    task_prerun,
    task_success,
    worker_init,
    worker_ready,
    worker_shutting_down,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# A worker's start would run Django's checks, which import every page, and pass over what they say.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

import django

django.setup()

from django.conf import settings
from django.db import close_old_connections, connections
from django.utils import timezone

from config import broker, pooled
from reconciliation.monitors import machinery
from refunds import crew, doorbell
from refunds.checks import require_trustworthy_database

# As many threads share one connection, and how few a program begins with.
_THREADS_TO_ONE, _CONNECTIONS_MIN = 4, 4

app = Celery("aftersend")
app.conf.update(
    broker_url=settings.BROKER_URL,
    task_queues=broker.queues(),
    task_default_queue="lookups",
    task_routes={
        "refunds.tasks.send": {"queue": "money"},
        # The most frequent one never waits, so it goes past the exchange that can hold messages
        # back: kombu asks Redis each time which queues hang on it.
        "refunds.tasks.send_ready": {"queue": "money", "exchange": "", "routing_key": "money"},
        "refunds.tasks.resend": {"queue": "money"},
        "refunds.tasks.*": {"queue": "lookups"},
        "reconciliation.tasks.*": {"queue": "lookups"},
        "review.tasks.*": {"queue": "lookups"},
    },
    # Celery would close the database's connection around each task. Django keeps it as long as
    # CONN_MAX_AGE says, and replaces a broken one (see `_keep_what_is_good`).
    CELERY_DB_REUSE_MAX=sys.maxsize,
    **broker.settings_for(settings.BROKER_URL),
)
app.conf.beat_schedule = {
    "ring for what is ready to send": {"task": "refunds.tasks.sweep_ready", "schedule": 5.0},
    "end leases": {"task": "reconciliation.tasks.end_leases", "schedule": 5.0},
    "ring for due lookups": {"task": "reconciliation.tasks.sweep_due", "schedule": 1.0},
    "apply notices": {"task": "reconciliation.tasks.sweep_notices", "schedule": 1.0},
    "probe paused accounts": {"task": "reconciliation.tasks.probe_accounts", "schedule": 5.0},
    "ring for due account lists": {
        "task": "reconciliation.tasks.sweep_accounts",
        "schedule": 60.0,
    },
    "watch what ended, where no list shows it": {
        "task": "reconciliation.tasks.watch_by_lookup",
        "schedule": 3600.0,
    },
    "watch balances": {"task": "reconciliation.tasks.watch_balances", "schedule": 30.0},
    "tell": {"task": "reconciliation.tasks.tell", "schedule": 5.0},
    "watch what runs out": {"task": "reconciliation.tasks.watch_time", "schedule": 60.0},
    "tend cases": {"task": "reconciliation.tasks.tend_cases", "schedule": 60.0},
    "expire proposals": {"task": "refunds.tasks.expire", "schedule": 60.0},
    "forget old drafts": {"task": "review.tasks.forget_drafts", "schedule": 3600.0},
    "compare with the witness": {"task": "refunds.tasks.check_witness", "schedule": 60.0},
    "tend a quarantine": {"task": "reconciliation.tasks.tend_quarantine", "schedule": 30.0},
    "read the monitors": {"task": "reconciliation.tasks.read_monitors", "schedule": 60.0},
    "watch the monitors": {"task": "reconciliation.tasks.watch_monitors", "schedule": 60.0},
    "verify what changed": {"task": "reconciliation.tasks.verify_changes", "schedule": 300.0},
    "verify everything, nightly": {
        "task": "reconciliation.tasks.verify_everything",
        "schedule": 60.0,
    },
}
app.autodiscover_tasks(["refunds", "reconciliation", "review"])


class _Spaced:
    """Lets one through in so many seconds: the fewer, the more want to.

    How many want to is judged by those since the last one that went. Where they come one by one
    each has its own, for one that is left out waits; in a crowd somebody looks anyway.
    """

    def __init__(self, seconds: float, seconds_max: float) -> None:
        self._usual, self._max = seconds, seconds_max
        self._seconds = seconds
        self._lock = threading.Lock()
        self._last_at = float("-inf")
        self._left_out = 0

    def may(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if now < self._last_at + self._seconds:
                self._left_out += 1
                return False
            crowded = (self._left_out + 1) / (now - self._last_at) > crew.CROWD_PER_SECOND
            self._seconds = min(2 * self._seconds, self._max) if crowded else self._usual
            self._last_at = now
            self._left_out = 0
            return True


_wakes = _Spaced(crew.WAKE_SPACING_SECONDS, crew.WAKE_SPACING_SECONDS_MAX)


def ring(task: str, operation_id: str, after_seconds: float) -> None:
    """Put one message on the queue; a broker that is away raises kombu's OperationalError.

    What is ready at once needs no message of its own: a wake-up says so, for all of them, and
    whoever hears it looks long enough for those that follow closely (`refunds.crew`).
    """
    if task == "refunds.tasks.send" and not after_seconds:
        if not _wakes.may():
            return
        task, operation_id = "refunds.tasks.send_ready", ""
    app.send_task(
        task,
        args=[operation_id] if operation_id else [],
        countdown=after_seconds or None,
        retry=False,
    )


doorbell.connect(ring)
_scheduled = frozenset(entry["task"] for entry in app.conf.beat_schedule.values())


@task_prerun.connect
@task_postrun.connect
def _keep_what_is_good(**_: object) -> None:
    close_old_connections()


@task_success.connect
def _remember_that_it_ran(sender: Any, **_: object) -> None:
    if sender.name in _scheduled:
        machinery.ran(sender.name, timezone.now())


@celeryd_after_setup.connect
def _count_hands(instance: Any, **_: object) -> None:
    # A pool of processes has one sender in each.
    in_threads = instance.pool_cls.__module__ == "celery.concurrency.thread"
    crew.OF_THIS_PROCESS.size = instance.concurrency if in_threads else 1
    if in_threads and not settings.ENV.database_pool:
        _share_connections(instance.concurrency)


def _share_connections(threads: int) -> None:
    """A thread needs none while it waits for a provider, which is most of its time. Few that are
    always busy cost the server much less than many that each keep their plans for later."""
    connections.close_all()  # what was asked at the start had one that no pool would take back
    here = connections.settings["default"]
    here["OPTIONS"]["pool"] = pooled.options(max(_CONNECTIONS_MIN, threads // _THREADS_TO_ONE))
    here["CONN_MAX_AGE"] = 0  # given back at once, and not closed by that


@worker_shutting_down.connect
def _finish_what_is_in_hand(**_: object) -> None:
    crew.OF_THIS_PROCESS.stop()


@worker_init.connect
def _check_database(**_: object) -> None:
    if settings.PRODUCTION:
        require_trustworthy_database()


@worker_ready.connect
def _check_witness_at_start(**_: object) -> None:
    app.send_task("refunds.tasks.check_witness", retry=False)
