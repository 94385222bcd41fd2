"""What settlement reports say of refunds: each line once, with what came of comparing it."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class SettlementLine(models.Model):
    """One refund in one report. Verdicts: match, different, extra, missing (booked by us, and in no
    report that should have it; `report_ref` is empty then). Amounts in minor units.

    `settled_minor`, `settled_currency` and `fee_minor` are in the currency of the payout; they
    are kept beside the refund and are never a difference.
    """

    provider_account = models.CharField(max_length=64)
    provider_refund_ref = models.CharField(max_length=128)
    report_ref = models.CharField(max_length=128, blank=True)
    payment_ref = models.CharField(max_length=128)
    marker = models.CharField(max_length=64, blank=True)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    provider_status = models.CharField(max_length=32, blank=True)
    provider_created_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    settled_minor = models.BigIntegerField(null=True)
    settled_currency = models.CharField(max_length=3, blank=True)
    fee_minor = models.BigIntegerField(null=True)
    verdict = models.CharField(max_length=16)
    because = models.CharField(max_length=300, blank=True)
    imported_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "settlement_line"
        constraints = [
            models.UniqueConstraint(
                fields=["provider_account", "provider_refund_ref", "report_ref"],
                name="settlement_line_once",
            ),
            models.CheckConstraint(
                name="settlement_line_verdict_known",
                condition=models.Q(verdict__in=["match", "different", "extra", "missing"]),
            ),
        ]
        indexes = [
            models.Index(
                fields=["provider_account", "imported_at"], name="settlement_line_by_import"
            ),
            # What does not match is rare, and is what people look at.
            models.Index(
                fields=["id"],
                condition=~models.Q(verdict="match"),
                name="settlement_line_to_look_at",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider_refund_ref} {self.verdict}"


class SettlementCover(models.Model):
    """Somebody said that an account's reports have every refund made in this time."""

    provider_account = models.CharField(max_length=64)
    covered_from = models.DateTimeField()
    covered_until = models.DateTimeField()
    said_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "settlement_cover"
        constraints = [
            models.UniqueConstraint(
                fields=["provider_account", "covered_from", "covered_until"],
                name="settlement_cover_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider_account} until {self.covered_until:%Y-%m-%d}"
