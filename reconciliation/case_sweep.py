"""What time does to cases: signatures that nobody gave, evidence that moved, money still owed."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from reconciliation import remedies, resolutions, rulings


def tend(now: datetime) -> dict[str, int]:
    """One round; returns how many of each. Claims and rests end by themselves, by their time."""
    batch_max = settings.LIMITS.sweep_batch_max
    return {
        "lapsed": rulings.lapse(now, batch_max=batch_max),
        "voided": resolutions.void_moved(batch_max=batch_max),
        "owed": remedies.owe_for_ended(now, batch_max=batch_max),
        "made_good": remedies.close_made_good(batch_max=batch_max),
    }
