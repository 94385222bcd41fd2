"""Cases: the unit of human work about what we learned afterwards."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from refunds.models import Operation, Payment, Person


class Case(models.Model):
    """What waits for a person. At most one open case per operation; reasons are added to it.

    Reasons: unresolved mismatch contradiction duplicate external unmatched_notice
    overdue_pending poison remedy. A case stops sends, not reading. It is about an operation, or
    about a payment that no operation explains, or, where the provider tells of payments that are
    not known here, about a provider account alone. `version` moves with every step that changes
    what others may do; `snoozed_until` and `escalated_to` are flags.
    """

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="cases"
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, related_name="cases")
    provider_account = models.CharField(max_length=64, blank=True)
    reasons = ArrayField(models.CharField(max_length=32))
    because = models.CharField(max_length=500)
    opened_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField()
    owner = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    owned_until = models.DateTimeField(null=True)
    version = models.IntegerField(default=1)
    snoozed_until = models.DateTimeField(null=True)
    escalated_to = models.CharField(max_length=16, blank=True, default="")
    closed_at = models.DateTimeField(null=True)
    closed_because = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "review_case"
        constraints = [
            models.UniqueConstraint(
                fields=["operation"],
                condition=models.Q(closed_at__isnull=True),
                name="case_one_open",
            ),
            models.UniqueConstraint(
                fields=["payment"],
                condition=models.Q(closed_at__isnull=True, operation__isnull=True),
                name="case_one_open_of_payment",
            ),
            models.UniqueConstraint(
                fields=["provider_account"],
                condition=models.Q(closed_at__isnull=True, payment__isnull=True),
                name="case_one_open_of_account",
            ),
            models.CheckConstraint(
                name="case_is_about_something",
                condition=models.Q(payment__isnull=False)
                | (models.Q(operation__isnull=True) & ~models.Q(provider_account="")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"],
                condition=models.Q(closed_at__isnull=True),
                name="case_open_due",
            )
        ]

    def __str__(self) -> str:
        return ", ".join(self.reasons)

    @property
    def account(self) -> str:
        """The provider account that it is about."""
        return self.payment.provider_account if self.payment else self.provider_account
