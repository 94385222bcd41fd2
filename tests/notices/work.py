"""The workers of a test: every bell that rang, heard in order, in this program."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from reconciliation import notices, tasks
from tests.notices.telling import Said, as_shown, plain_body, tell
from tests.provider_process import SandboxProcess

Rung = list[tuple[str, str]]
_STEPS_MAX = 200


def work(rung: Rung) -> None:
    """Hear every bell, also those that hearing rings, until none is left.

    Bells of the money queue are for other workers.
    """
    for _ in range(_STEPS_MAX):
        if not rung:
            return
        task, named = rung.pop(0)
        queue, _, name = task.rpartition(".")
        if queue == "reconciliation.tasks":
            getattr(tasks, name)(named)
    raise AssertionError(f"bells without end: {rung[:5]}")


def sweep(rung: Rung, *, seconds: float = 0) -> None:
    """What the sweep finds so many seconds from now, applied."""
    notices.ring_for_due(timezone.now() + timedelta(seconds=seconds), batch_max=100)
    work(rung)


def told_of(
    provider: SandboxProcess,
    event_id: str = "evt_1",
    *,
    account: str = "plain-main",
    **changed: object,
) -> Said:
    """A genuine notice of the newest refund in the provider's book, with some fields changed."""
    for payment in reversed(provider.book(account)["payments"]):
        for refund in reversed(payment["refunds"]):
            shown = as_shown(refund, payment["ref"], payment["currency"])
            fields = {name: value for name, value in (shown | changed).items() if value is not None}
            return tell(plain_body(event_id, fields), account=account)
    raise AssertionError("the book holds no refund")
