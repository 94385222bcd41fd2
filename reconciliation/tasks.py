"""Bells of the finding-out side. A task carries an id or nothing, and calls one function."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from reconciliation import case_sweep, monitors, probes, reconciler, sweep


@shared_task
def look_up(operation_id: str) -> str:
    return reconciler.look_up(UUID(operation_id))


@shared_task
def sweep_due() -> int:
    return sweep.ring_for_due(timezone.now())


@shared_task
def end_leases() -> int:
    return sweep.end_leases(timezone.now())


@shared_task
def watch_balances() -> int:
    return monitors.over_refunded()


@shared_task
def probe_accounts() -> list[str]:
    return probes.probe_accounts(timezone.now())


@shared_task
def tend_cases() -> dict[str, int]:
    return case_sweep.tend(timezone.now())
