"""What an order's payments hold, what is gone, and which operations made it so."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from refunds.models import Order, Payment
from refunds.queries import results

OPERATIONS_MAX = 100  # of one order in one answer: the newest


@dataclass(frozen=True, slots=True)
class VisibleOrder:
    """An order and those of its payments that the asker's accounts cover."""

    order: Order
    payments: list[Payment]


def visible_order(ref: str, accounts: Collection[str]) -> VisibleOrder | None:
    """The order, or None where there is none or all its payments are of other accounts."""
    order = Order.objects.filter(ref=ref).prefetch_related("payments").first()
    if order is None:
        return None
    known = sorted(order.payments.all(), key=lambda payment: payment.pk)
    seen = [payment for payment in known if payment.provider_account in accounts]
    return None if known and not seen else VisibleOrder(order, seen)


def balance(payment: Payment) -> dict[str, Any]:
    """One payment in minor units of its currency; refundable may be negative, never clamped."""
    return {
        "ref": payment.ref,
        "captured_minor": payment.captured_minor,
        "refunded_minor": payment.refunded_minor,
        "held_minor": payment.held_minor,
        "refundable_minor": payment.available_minor,
    }


def order_balances(order: Order, payments: Iterable[Payment]) -> dict[str, Any]:
    """An order as a feed is answered: its version and the balance of each payment."""
    return {
        "order_ref": order.ref,
        "version": order.version,
        "frozen": order.frozen,
        "payments": [balance(payment) for payment in payments],
    }


def order_refunds(visible: VisibleOrder, now: datetime) -> dict[str, Any]:
    """The balance of each payment with its operations, oldest first."""
    shown = {payment.pk for payment in visible.payments}
    newest = results.readable().filter(order=visible.order, payment__in=shown).order_by("-pk")
    found = list(newest[: OPERATIONS_MAX + 1])
    operations: dict[int, list[dict[str, Any]]] = {pk: [] for pk in shown}
    for operation in reversed(found[:OPERATIONS_MAX]):
        operations[operation.payment_id].append(results.result(operation, now))
    return {
        "order_ref": visible.order.ref,
        "version": visible.order.version,
        "frozen": visible.order.frozen,
        "currency": visible.order.currency,
        "payments": [
            balance(payment)
            | {
                "provider_account": payment.provider_account,
                "currency": payment.currency,
                "state": payment.state,
                "operations": operations[payment.pk],
            }
            for payment in visible.payments
        ],
        "older_left_out": len(found) > OPERATIONS_MAX,
    }
