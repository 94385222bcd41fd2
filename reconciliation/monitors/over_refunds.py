"""Payments that gave back more than they took: found by a standing question, shown, never clamped."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from reconciliation.cases import open_payment_case
from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.money import display
from refunds.models import Operation, Order, Payment


def over_refunded() -> int:
    """Open an `external` case for each payment that gave back more than it took; returns how many.

    The amounts stay as they are: what really happened is shown, never clamped. A payment with
    such a case is halted until a person has looked.
    """
    # While an operation is uncertain, a refund that was also fed from outside counts twice: once as
    # held, once as gone. That ends with its lookup; what is gone alone never counts twice.
    uncertain = Operation.objects.filter(
        order_id=OuterRef("order_id"), payment=OuterRef("pk"), state__in=sorted(states.UNCERTAIN)
    )
    suspects = (
        Payment.objects.filter(
            over_refunded__isnull=False, captured_minor__lt=F("refunded_minor") + F("held_minor")
        )
        .filter(Q(captured_minor__lt=F("refunded_minor")) | ~Exists(uncertain))
        .exclude(
            pk__in=Case.objects.filter(
                closed_at=None, operation=None, payment__isnull=False
            ).values("payment_id")
        )
        .values_list("pk", "order_id")
    )
    opened = 0
    for payment_id, order_id in list(suspects):
        with transaction.atomic():
            Order.objects.select_for_update().get(pk=order_id)
            payment = Payment.objects.select_for_update().get(pk=payment_id)
            over_minor = -payment.available_minor
            open_already = Case.objects.filter(
                payment=payment, operation=None, closed_at=None
            ).exists()
            if over_minor <= 0 or open_already:
                continue
            open_payment_case(
                payment,
                "external",
                f"Over-refunded by {display(over_minor, payment.currency)}: refunds made"
                " here and elsewhere are more than was captured.",
            )
            opened += 1
    return opened
