"""The Celery app: two queues, a static schedule, and the bell that `doorbell` rings."""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun, task_success, worker_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# A worker's start would run Django's checks, which import every page, and pass over what they say.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

import django

django.setup()

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from config import broker
from reconciliation.monitors import machinery
from refunds import doorbell
from refunds.checks import require_trustworthy_database

app = Celery("aftersend")
app.conf.update(
    broker_url=settings.BROKER_URL,
    task_queues=broker.queues(),
    task_default_queue="lookups",
    task_routes={
        "refunds.tasks.send": {"queue": "money"},
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


def ring(task: str, operation_id: str, after_seconds: float) -> None:
    """Put one message on the queue; a broker that is away raises kombu's OperationalError."""
    app.send_task(task, args=[operation_id], countdown=after_seconds or None, retry=False)


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


@worker_init.connect
def _check_database(**_: object) -> None:
    if settings.PRODUCTION:
        require_trustworthy_database()


@worker_ready.connect
def _check_witness_at_start(**_: object) -> None:
    app.send_task("refunds.tasks.check_witness", retry=False)
