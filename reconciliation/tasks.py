"""Bells of the finding-out side. A task carries an id or nothing, and calls one function."""

from __future__ import annotations

from uuid import UUID

from celery import current_app, shared_task
from django.conf import settings
from django.utils import timezone

from reconciliation import (
    account_sweep,
    case_sweep,
    monitors,
    notices,
    outbox,
    outbox_sending,
    outbox_watch,
    probes,
    quarantine,
    reconciler,
    sweep,
    verifiers,
)
from reconciliation.monitors import run as standing_questions
from refunds.ledger import database_now


@shared_task
def look_up(operation_id: str) -> str:
    word = reconciler.look_up(UUID(operation_id))
    notices.after_lookup(UUID(operation_id))
    return word


@shared_task
def apply_notice(notice_id: str) -> str:
    return notices.apply(int(notice_id))


@shared_task
def sweep_notices() -> int:
    return notices.ring_for_due(timezone.now(), batch_max=settings.LIMITS.sweep_batch_max)


@shared_task
def sweep_due() -> int:
    return sweep.ring_for_due(database_now())


@shared_task
def end_leases() -> int:
    return sweep.end_leases(database_now())


@shared_task
def watch_balances() -> int:
    return monitors.over_refunded()


@shared_task
def probe_accounts() -> list[str]:
    return probes.probe_accounts(timezone.now())


@shared_task
def sweep_accounts() -> list[str]:
    return account_sweep.ring_for_due(database_now())


@shared_task
def sweep_account(name: str) -> list[str]:
    return account_sweep.sweep_account(name)


@shared_task
def watch_by_lookup() -> int:
    return account_sweep.watch_by_lookup(database_now())


@shared_task
def tend_cases() -> dict[str, int]:
    return case_sweep.tend(timezone.now())


@shared_task
def read_monitors() -> int:
    entries = current_app.conf.beat_schedule.values()
    scheduled = {each["task"]: each["schedule"] for each in entries}
    return standing_questions.read_all(scheduled, timezone.now())


@shared_task
def watch_monitors() -> int:
    return standing_questions.watch(timezone.now())


@shared_task
def verify_changes() -> int:
    return verifiers.verify_changes(timezone.now())


@shared_task
def verify_everything() -> int:
    return verifiers.verify_everything(timezone.now())


@shared_task
def tell() -> int:
    """What happened becomes messages, and what is due is sent."""
    outbox.expand()
    return outbox_sending.deliver_due(outbox_sending.worker_name())


@shared_task
def watch_time() -> int:
    return outbox_watch.watch(timezone.now())


@shared_task
def tend_quarantine() -> int:
    return quarantine.tend(database_now())
