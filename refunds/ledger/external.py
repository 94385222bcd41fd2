"""Refunds that no operation of ours explains: they count, whoever made them (R25)."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F

from refunds.models import Payment, ProviderRefund

# Whatever is not known to have ended without paying counts as gone: a word that we do not know
# must not make room for a second refund.
NOT_PAID = frozenset({"failed", "canceled", "cancelled", "rejected", "declined"})


def learn_external(
    payment: Payment,
    *,
    ref: str,
    amount_minor: int,
    provider_status: str,
    created_at: datetime | None = None,
) -> bool:
    """Store or update one outside refund; True when what counts on the payment has changed.

    Learning the same thing again changes nothing. The payment's row is locked by the caller,
    who also moves the order's version. A refund of our own is left to its operation.
    """
    counts = provider_status.strip().lower() not in NOT_PAID
    row, created = ProviderRefund.objects.get_or_create(
        provider_account=payment.provider_account,
        ref=ref,
        defaults={
            "payment": payment,
            "amount_minor": amount_minor,
            "provider_status": provider_status,
            "counts": counts,
            "provider_created_at": created_at,
        },
    )
    if row.operation_id is not None:
        return False
    before = 0 if created else (row.amount_minor if row.counts else 0)
    after = amount_minor if counts else 0
    if not created:
        row.amount_minor, row.provider_status, row.counts = amount_minor, provider_status, counts
        row.save(update_fields=["amount_minor", "provider_status", "counts"])
    if before != after:
        Payment.objects.filter(pk=payment.pk).update(
            refunded_minor=F("refunded_minor") + after - before
        )
        payment.refunded_minor += after - before
    return before != after
