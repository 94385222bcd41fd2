"""Facts from outside: stored once, never edited, and never fenced (rule 13)."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from refunds.models.operations import Operation
from refunds.models.orders import Payment


class Evidence(models.Model):
    """What an answer, a lookup or a notice said, with its raw bytes (capped) and its reading.

    A `listing` is one refund as the account's own list showed it: a reason to look, no finding.
    """

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="evidence"
    )
    attempt_no = models.IntegerField(null=True)
    lookup_no = models.IntegerField(null=True)
    kind = models.CharField(max_length=16)
    started_at = models.DateTimeField()
    stored_at = models.DateTimeField(db_default=Now())
    body = models.BinaryField()
    facts = models.JSONField()

    class Meta:
        db_table = "evidence"
        # Rows come in the order of time: the standing questions read the last minutes by it.
        indexes = [BrinIndex(fields=["stored_at"], name="evidence_by_time", autosummarize=True)]
        constraints = [
            models.CheckConstraint(
                name="evidence_kind_known",
                condition=models.Q(kind__in=["answer", "lookup", "notice", "listing"]),
            )
        ]


class ProviderRefund(models.Model):
    """Every refund a provider is known to have, ours or not, counted once.

    `counts`: its amount is in the payment's refunded sum. `operation` is NULL for a refund that
    nobody here made. `shown_at`: when the provider itself last showed an outside refund anew; from
    then on what the merchant feeds about it changes nothing.
    """

    provider_account = models.CharField(max_length=64)
    ref = models.CharField(max_length=128)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="provider_refunds")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="provider_refunds"
    )
    amount_minor = models.BigIntegerField()
    provider_status = models.CharField(max_length=32)
    counts = models.BooleanField()
    provider_created_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField(db_default=Now())
    shown_at = models.DateTimeField(null=True)
    settled_minor = models.BigIntegerField(null=True)
    settled_currency = models.CharField(max_length=3, db_default="")
    fee_minor = models.BigIntegerField(null=True)

    class Meta:
        db_table = "provider_refund"
        # Rows come in the order of time: the standing questions read the last minutes by it.
        indexes = [
            BrinIndex(fields=["first_seen_at"], name="provider_refund_by_time", autosummarize=True),
            # A page of an account's list is held against what was made between its edges.
            models.Index(
                fields=["provider_account", "provider_created_at"],
                condition=models.Q(counts=True, operation__isnull=False),
                name="provider_refund_listed",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["provider_account", "ref"], name="provider_refund_ref")
        ]
