"""The order's version and the money set aside: every move of them names its cause."""

from __future__ import annotations

from typing import Any

from django.db.models import F
from django.utils import timezone

from refunds.domain import states
from refunds.ledger.door import Actor, Locked
from refunds.models import Operation, Order, OrderMove, Payment, Reservation

# What a waiting proposal of a frozen order is stale by, until the freeze is lifted.
FROZEN = "frozen"


def bump(
    order: Order,
    cause: str,
    *,
    by: Actor,
    operation: Operation | None = None,
    amount_minor: int | None = None,
    detail: dict[str, Any] | None = None,
) -> int:
    """Order version + 1 with its cause; the order's row is locked by the caller."""
    order.version += 1
    Order.objects.filter(pk=order.pk).update(version=F("version") + 1)
    OrderMove.objects.create(
        order=order,
        version=order.version,
        cause=cause,
        operation=operation,
        amount_minor=amount_minor,
        actor=by.name,
        detail=detail or {},
        at=timezone.now(),
    )
    return order.version


def mark_frozen(order: Order, *, frozen: bool, by: Actor, reason: str) -> None:
    """Freeze the order or lift it, with its cause; its waiting proposals are stale meanwhile.

    The order's row is locked by the caller. A proposal that is stale already keeps its own cause.
    """
    Order.objects.filter(pk=order.pk).update(frozen=frozen)
    order.frozen = frozen
    bump(order, FROZEN if frozen else "unfrozen", by=by, detail={"reason": reason})
    waiting = Operation.objects.filter(order=order, state=states.AWAITING_APPROVAL)
    if frozen:
        waiting.filter(stale_cause="").update(stale_cause=FROZEN)
    else:
        waiting.filter(stale_cause=FROZEN).update(stale_cause="")


def release(locked: Locked, *, by: Actor) -> bool:
    """Give back what the operation holds, if it holds anything; bumps the order then."""
    operation = locked.operation
    if not Reservation.objects.filter(operation=operation, state="held").update(state="released"):
        return False
    Payment.objects.filter(pk=locked.payment.pk).update(
        held_minor=F("held_minor") - operation.amount_minor
    )
    locked.payment.held_minor -= operation.amount_minor
    bump(locked.order, "released", by=by, operation=operation, amount_minor=operation.amount_minor)
    return True


def book(locked: Locked) -> None:
    """Held becomes refunded for the same amount: what is available stays, so no bump."""
    operation = locked.operation
    Reservation.objects.filter(operation=operation, state="held").update(state="booked")
    Payment.objects.filter(pk=locked.payment.pk).update(
        held_minor=F("held_minor") - operation.amount_minor,
        refunded_minor=F("refunded_minor") + operation.amount_minor,
    )
    locked.payment.held_minor -= operation.amount_minor
    locked.payment.refunded_minor += operation.amount_minor


def hold_again(locked: Locked, *, by: Actor) -> None:
    """Hold the amount of an operation that a contradiction re-opened, without asking for room.

    The truth from outside must be storable, so the payment may be over-committed by it.
    """
    operation = locked.operation
    held, created = Reservation.objects.get_or_create(
        operation=operation,
        defaults={
            "payment": locked.payment,
            "amount_minor": operation.amount_minor,
            "state": "held",
        },
    )
    if not created:
        if held.state == "held":
            return
        Reservation.objects.filter(pk=held.pk).update(state="held")
    Payment.objects.filter(pk=locked.payment.pk).update(
        held_minor=F("held_minor") + operation.amount_minor
    )
    locked.payment.held_minor += operation.amount_minor
    bump(
        locked.order,
        "contradicted",
        by=by,
        operation=operation,
        amount_minor=operation.amount_minor,
    )
