"""The money guard as people see it: what is captured, gone, held, and what changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Sum

from refunds.domain import states
from refunds.domain.money import display
from refunds.models import Operation, Order, Payment


def approved_not_held_minor(payment: Payment, *, besides: Operation | None = None) -> int:
    """Sum of authorized operations of the payment that hold nothing yet, in minor units.

    Read under the payment's lock by the approval, so that two approvals cannot both count on
    the same money.
    """
    waiting = Operation.objects.filter(
        order_id=payment.order_id, payment=payment, state=states.AUTHORIZED
    ).exclude(reservation__state="held")
    if besides is not None:
        waiting = waiting.exclude(pk=besides.pk)
    return waiting.aggregate(total=Sum("amount_minor"))["total"] or 0


def approved_not_held(operations: Sequence[Operation]) -> dict[UUID, int]:
    """Per operation the same sum, itself left out: one query for a page of them."""
    waiting = list(
        Operation.objects.filter(
            order__in={each.order_id for each in operations},
            payment__in={each.payment_id for each in operations},
            state=states.AUTHORIZED,
        )
        .exclude(reservation__state="held")
        .values_list("pk", "payment_id", "amount_minor")
    )
    return {
        of.pk: sum(
            minor for pk, payment, minor in waiting if payment == of.payment_id and pk != of.pk
        )
        for of in operations
    }


def held_words(payment: Payment) -> list[str]:
    """What is held, for the sentence: a refund whose outcome nobody knows is named."""
    unknown = Operation.objects.filter(
        order_id=payment.order_id,
        payment=payment,
        state=states.UNKNOWN,
        reservation__state="held",
    ).values_list("pk", "amount_minor")
    parts = [
        f"{display(minor, payment.currency)} is held by a refund whose outcome is unknown"
        f" (…{str(pk)[-6:]})"
        for pk, minor in unknown
    ]
    rest = payment.held_minor - sum(minor for _, minor in unknown)
    return [*parts, f"{display(rest, payment.currency)} is held"] if rest > 0 else parts


def snapshot(order: Order, payment: Payment) -> dict[str, Any]:
    """The refundable facts an approver sees, as stored with the approval."""
    return {
        "order_version": order.version,
        "currency": payment.currency,
        "captured_minor": payment.captured_minor,
        "refunded_minor": payment.refunded_minor,
        "held_minor": payment.held_minor,
        "available_minor": payment.available_minor,
        "payment_state": payment.state,
        "payment_halted": payment.halted,
        "frozen": order.frozen,
        "customer_ref": order.customer_ref,
        "return_state": order.return_state,
    }


def changed_fields(then: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(field, then, now) of every fact that differs, in the order of the snapshot."""
    return [(name, then.get(name), now[name]) for name in now if then.get(name) != now[name]]
