"""What a provider shows of payments beside our own refunds: disputes, and what has no payment yet."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from refunds.domain.outcome import RefundRecord
from refunds.models.orders import Payment


class UnplacedRefund(models.Model):
    """A refund of a payment that nobody has fed: remembered, and placed when its order comes.

    `payment_refs` are all names of its payment. `explained`: the order's own feed named it, so
    nobody has to look at it. `concluded_at`: placed, and what follows from it was done.
    """

    provider_account = models.CharField(max_length=64)
    ref = models.CharField(max_length=128)
    payment_refs = ArrayField(models.CharField(max_length=128))
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    provider_status = models.CharField(max_length=32)
    marker = models.CharField(max_length=128, blank=True)
    provider_created_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField(db_default=Now())
    explained = models.BooleanField(default=False)
    placed_at = models.DateTimeField(null=True)
    concluded_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "unplaced_refund"
        constraints = [
            models.UniqueConstraint(fields=["provider_account", "ref"], name="unplaced_refund_ref")
        ]
        indexes = [
            GinIndex(
                fields=["payment_refs"],
                condition=models.Q(placed_at__isnull=True),
                name="unplaced_refund_payment",
            ),
            models.Index(
                fields=["id"],
                condition=models.Q(placed_at__isnull=False, concluded_at__isnull=True),
                name="unplaced_refund_to_conclude",
            ),
        ]

    def __str__(self) -> str:
        return self.ref

    @property
    def record(self) -> RefundRecord:
        """What the provider showed of it."""
        return RefundRecord(
            ref=self.ref,
            payment_ref=self.payment_refs[0],
            amount_minor=self.amount_minor,
            currency=self.currency,
            provider_status=self.provider_status,
            marker=self.marker or None,
            created_at=self.provider_created_at,
        )


class Dispute(models.Model):
    """A dispute as the provider shows it; `payment` is NULL until the payment is fed.

    `standing` is open, inquiry (leaves the payment refundable), won or lost.
    """

    provider_account = models.CharField(max_length=64)
    ref = models.CharField(max_length=128)
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, null=True, related_name="disputes"
    )
    payment_refs = ArrayField(models.CharField(max_length=128))
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    standing = models.CharField(max_length=16)
    provider_status = models.CharField(max_length=32)
    provider_created_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "dispute"
        constraints = [
            models.UniqueConstraint(fields=["provider_account", "ref"], name="dispute_ref"),
            models.CheckConstraint(
                name="dispute_standing_known",
                condition=models.Q(standing__in=["open", "inquiry", "won", "lost"]),
            ),
        ]
        indexes = [
            GinIndex(
                fields=["payment_refs"],
                condition=models.Q(payment__isnull=True),
                name="dispute_unplaced",
            )
        ]

    def __str__(self) -> str:
        return self.ref
