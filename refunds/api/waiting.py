"""The caller's short wait: a few reads over some seconds, holding nothing in between."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection

from refunds.domain import states
from refunds.models import Operation

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 0.5
PAUSE_GROWTH = 1.5


def at_rest(state: str, pending_reason: str, *, patient: bool) -> bool:
    """Whether waiting some seconds more cannot help.

    A proposer does not wait for people or for a provider that has accepted; who asks for a
    status and says how long to wait is `patient` and does.
    """
    if state in states.ENDED:
        return True
    if state == states.PENDING:
        return not patient or pending_reason == "needs_customer"
    return state in (states.PROPOSED, states.AWAITING_APPROVAL) and not patient


async def wait(operation_id: UUID, *, seconds: float, patient: bool) -> None:
    """Return when the operation is at rest, or after so many seconds."""
    until = time.monotonic() + seconds
    pause = PAUSE_FIRST_SECONDS
    while not await sync_to_async(_look)(operation_id, patient):
        left = until - time.monotonic()
        if left <= 0:
            return
        await asyncio.sleep(min(pause, left))
        pause = min(pause * PAUSE_GROWTH, PAUSE_MAX_SECONDS)


def _look(operation_id: UUID, patient: bool) -> bool:
    row = Operation.objects.values_list("state", "pending_reason").get(pk=operation_id)
    rests = at_rest(*row, patient=patient)
    if not rests:
        hang_up()
    return rests


def hang_up() -> None:
    """Give the connection back before sleeping: many callers may wait at once."""
    if not connection.in_atomic_block:
        connection.close()
