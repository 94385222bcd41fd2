"""Booking what people ruled: through the same rows as what a lookup found, and the same door."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Q

from reconciliation.booking import Booked, book_found
from refunds.domain.errors import Refusal
from refunds.domain.outcome import RefundRecord
from refunds.ledger import Actor, Locked, bump, release
from refunds.models import Attempt, Payment, ProviderRefund, Reservation


def book_happened(locked: Locked, record: RefundRecord) -> None:
    """The refund that was asked for is booked as this one. Raises Refusal booked_elsewhere."""
    if book_found(locked, record, counts=True) is Booked.ANOTHERS:
        raise _anothers(record.ref)


def book_different(
    locked: Locked,
    *,
    ref: str,
    amount_minor: int,
    provider_status: str,
    created_at: datetime | None,
    by: Actor,
) -> None:
    """What really left is counted instead of what was asked for, and the order moves.

    `amount_minor` is in the payment's currency. Raises Refusal booked_elsewhere.
    """
    operation, payment = locked.operation, locked.payment
    row, created = ProviderRefund.objects.select_for_update().get_or_create(
        provider_account=operation.provider_account,
        ref=ref,
        defaults={
            "payment": payment,
            "operation": operation,
            "amount_minor": amount_minor,
            "provider_status": provider_status,
            "counts": True,
            "provider_created_at": created_at,
        },
    )
    if not created and (
        row.operation_id not in (None, operation.pk) or row.payment_id != payment.pk
    ):
        raise _anothers(ref)
    before = row.amount_minor if not created and row.counts else 0
    ProviderRefund.objects.filter(pk=row.pk).update(
        operation=operation, amount_minor=amount_minor, provider_status=provider_status, counts=True
    )
    held = Reservation.objects.filter(operation=operation, state="held").update(state="booked")
    held_minor = operation.amount_minor if held else 0
    Payment.objects.filter(pk=payment.pk).update(
        held_minor=F("held_minor") - held_minor,
        refunded_minor=F("refunded_minor") + amount_minor - before,
    )
    payment.held_minor -= held_minor
    payment.refunded_minor += amount_minor - before
    bump(
        locked.order,
        "difference",
        by=by,
        operation=operation,
        amount_minor=amount_minor,
        detail={"ref": ref, "asked_minor": operation.amount_minor},
    )


def book_not_happened(locked: Locked, *, absence_id: int | None, by: Actor) -> None:
    """What was held is given back; the finding that proves it settles the open attempts."""
    release(locked, by=by)
    if absence_id is not None:
        Attempt.objects.filter(
            Q(outcome=None) | Q(outcome="unanswered"),
            operation=locked.operation,
            settled_by_evidence=None,
        ).update(settled_by_evidence=absence_id)


def _anothers(ref: str) -> Refusal:
    return Refusal(
        "booked_elsewhere",
        f"Not recorded. {ref} is booked for another operation or order.",
        status=409,
        what_to_do="Look at that one first: the same money cannot have answered two requests.",
    )
