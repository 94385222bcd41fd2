"""Finding all due work in the database, so that a lost message costs seconds only."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from reconciliation import budget, heartbeat, pacing, reconciler
from refunds import doorbell


def ring_for_due(now: datetime) -> int:
    """Ring for every operation whose lookup is due; returns how many."""
    ids = list(reconciler.due(now, batch_max=settings.LIMITS.sweep_batch_max))
    pacing.rung(ids, now)
    for operation_id in ids:
        doorbell.ring_lookup(operation_id)
    heartbeat.beat(now)
    if now.minute == 0 and not ids:
        budget.forget()
    return len(ids)


def end_leases(now: datetime) -> int:
    """End the leases that are over; returns how many."""
    return reconciler.end_leases(now, batch_max=settings.LIMITS.sweep_batch_max)
