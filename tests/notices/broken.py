"""Two mistakes that teams make with notices, to see the storm notice them: `BREAK=...`.

Only this program is patched, never the product.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import DatabaseError, InterfaceError

from reconciliation import inbox, notices, unmatched
from reconciliation.models import Notice
from refunds.providers.base import Account, Told


def ack_before_store() -> None:
    """The answer goes out first; what fails afterwards nobody sends again."""
    honest = inbox.store

    def store(
        account: Account, told: Told, body: bytes, *, signed_at: datetime, arrived_at: datetime
    ) -> inbox.Stored:
        try:
            return honest(account, told, body, signed_at=signed_at, arrived_at=arrived_at)
        except (DatabaseError, InterfaceError):
            return inbox.Stored(id=0, verdict="genuine", is_new=False)

    inbox.store = store


def first_notice_wins() -> None:
    """What the first notice of a refund says is the truth; the others are taken for repeats."""
    honest = notices._apply

    def apply(notice_id: int) -> str:
        notice = Notice.objects.filter(pk=notice_id, applied_at=None, verdict="genuine").first()
        operation_id = unmatched.match(notice) if notice is not None else None
        if notice is None or operation_id is None:
            return honest(notice_id)
        if Notice.objects.filter(operation=operation_id).exclude(applied_at=None).exists():
            return unmatched.end(notice_id, "looked_up")
        return notices._prove(notice, operation_id)

    notices._apply = apply


MODES: dict[str, Callable[[], None]] = {
    "first-notice-wins": first_notice_wins,
    "ack-before-store": ack_before_store,
}
