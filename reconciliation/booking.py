"""Booking a refund that a lookup found: every provider refund counts once, whoever learned it."""

from __future__ import annotations

from enum import Enum, auto

from django.db.models import F

from refunds.domain.outcome import RefundRecord
from refunds.ledger import RECONCILER, Locked, book, bump
from refunds.models import Payment, ProviderRefund, Reservation


class Booked(Enum):
    """What `book_found` did with the record."""

    NOTHING = auto()
    OURS = auto()
    ANOTHERS = auto()


def book_found(locked: Locked, record: RefundRecord, *, counts: bool) -> Booked:
    """Tie the found refund to the operation; count it when `counts`. Locks are the caller's.

    A refund first learned from outside already counts in the payment's refunded sum: then only
    the hold is given up, after what was fed wrongly was corrected. One that is tied to another
    operation, or was fed for another order, is not ours to book: a person must look.
    """

    operation, payment = locked.operation, locked.payment
    row, created = ProviderRefund.objects.select_for_update().get_or_create(
        provider_account=operation.provider_account,
        ref=record.ref,
        defaults={
            "payment": payment,
            "operation": operation,
            "amount_minor": operation.amount_minor,
            "provider_status": record.provider_status,
            "counts": counts,
            "provider_created_at": record.created_at,
        },
    )
    if row.operation_id not in (None, operation.pk):
        return Booked.ANOTHERS
    if not created and row.payment.order_id != operation.order_id:
        return Booked.ANOTHERS
    counted_before = not created and row.counts
    if counted_before and (row.payment_id, row.amount_minor) != (
        payment.pk,
        operation.amount_minor,
    ):
        _take_out(locked, row)
        counted_before = False
    ProviderRefund.objects.filter(pk=row.pk).update(
        operation=operation,
        payment=payment,
        amount_minor=operation.amount_minor,
        provider_status=record.provider_status,
        counts=counts or counted_before,
    )
    if not counts:
        return Booked.OURS
    if counted_before:
        _give_up_hold(locked)
    else:
        book(locked)
    return Booked.OURS


def _take_out(locked: Locked, row: ProviderRefund) -> None:
    """A refund was fed with another amount or payment than the provider's record shows.

    The proof outranks the feed: what was counted goes out where it stood, and the order moves.
    The order's row is locked, so no other writer holds a payment of it.
    """
    Payment.objects.filter(pk=row.payment_id).update(
        refunded_minor=F("refunded_minor") - row.amount_minor
    )
    if row.payment_id == locked.payment.pk:
        locked.payment.refunded_minor -= row.amount_minor
    bump(
        locked.order,
        "difference",
        by=RECONCILER,
        operation=locked.operation,
        amount_minor=row.amount_minor,
        detail={"ref": row.ref, "fed_payment": row.payment.ref, "fed_minor": row.amount_minor},
    )


def _give_up_hold(locked: Locked) -> None:
    operation = locked.operation
    if Reservation.objects.filter(operation=operation, state="held").update(state="booked"):
        Payment.objects.filter(pk=locked.payment.pk).update(
            held_minor=F("held_minor") - operation.amount_minor
        )
        locked.payment.held_minor -= operation.amount_minor


def book_surplus(locked: Locked, record: RefundRecord) -> bool:
    """Count a refund that was paid besides the one the operation asked for; False if it counts."""
    amount_minor = record.amount_minor or 0
    row, created = ProviderRefund.objects.get_or_create(
        provider_account=locked.operation.provider_account,
        ref=record.ref,
        defaults={
            "payment": locked.payment,
            "operation": locked.operation,
            "amount_minor": amount_minor,
            "provider_status": record.provider_status,
            "counts": True,
            "provider_created_at": record.created_at,
        },
    )
    again = row.operation_id == locked.operation.pk and not row.counts
    if again:  # it had come back, and is shown as paid once more
        ProviderRefund.objects.filter(pk=row.pk).update(
            counts=True, amount_minor=amount_minor, provider_status=record.provider_status
        )
    if created or again:
        Payment.objects.filter(pk=locked.payment.pk).update(
            refunded_minor=F("refunded_minor") + amount_minor
        )
        locked.payment.refunded_minor += amount_minor
    return created or again
