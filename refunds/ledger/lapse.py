"""Clocks and facts that end a proposal or an approval, without anybody deciding anew."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from refunds.domain import states
from refunds.ledger.door import POLICY, Actor, lock, transition
from refunds.ledger.orders import release
from refunds.models import Operation


def back_to_waiting(
    operation: Operation, event: str, by: Actor, cause: str, valid_seconds: int
) -> None:
    """authorized -> awaiting_approval: the round's approvals stop counting."""
    until = timezone.now() + timedelta(seconds=valid_seconds)
    transition(
        operation,
        event,
        by=by,
        sets={
            "round": operation.round + 1,
            "send_version": None,
            "not_before": None,
            "stale_cause": cause,
            "expires_at": until,
            "due_at": until,
        },
        detail={"cause": cause},
    )


def lapse(operation_id: UUID, *, cause: str, valid_seconds: int) -> Operation | None:
    """Policy ends an approval that no longer fits; None when it was moved meanwhile."""
    with transaction.atomic():
        locked = lock(operation_id)
        if locked.operation.state != states.AUTHORIZED:
            return None
        release(locked, by=POLICY)
        back_to_waiting(locked.operation, "approval_lapsed", POLICY, cause, valid_seconds)
        return locked.operation


def expire(now: datetime, *, batch_max: int) -> int:
    """End proposals that nobody decided in time; returns how many."""
    late = Operation.objects.filter(state=states.AWAITING_APPROVAL, due_at__lte=now).values_list(
        "pk", flat=True
    )[:batch_max]
    ended = 0
    for operation_id in list(late):
        with transaction.atomic():
            operation = lock(operation_id).operation
            if operation.state == states.AWAITING_APPROVAL and operation.expires_at <= now:
                transition(operation, "expired", by=POLICY)
                ended += 1
    return ended
