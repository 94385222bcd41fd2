"""The inbox of notices: what providers told us unasked, as it came, and what became of it."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from reconciliation.models.cases import Case
from refunds.models import Evidence, Operation


class Notice(models.Model):
    """One notice. What came is written once; stored and applied are separate marks.

    `verdict`: `genuine`; `foreign` (genuine, but of another mode or account); `odd` (the id of an
    earlier notice with other content). Only a genuine one says anything about a refund.
    `deliveries` counts how often it came. `due_at` is when to look at it next; NULL once done.
    `lookup_after`: a lookup with a higher number started after this notice was stored.
    `outcome`, once applied: looked_up, proof, outside, nothing, foreign, odd, given_up.
    """

    provider_account = models.CharField(max_length=64)
    event_id = models.CharField(max_length=128)
    kind = models.CharField(max_length=128)
    verdict = models.CharField(max_length=16)
    because = models.CharField(max_length=300, blank=True)
    body = models.BinaryField()
    digest = models.BinaryField()
    facts = models.JSONField()
    signed_at = models.DateTimeField()
    arrived_at = models.DateTimeField()
    stored_at = models.DateTimeField(db_default=Now())
    deliveries = models.IntegerField(default=1)

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="notices"
    )
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, null=True, related_name="+")
    case = models.ForeignKey(Case, on_delete=models.PROTECT, null=True, related_name="notices")
    lookup_after = models.IntegerField(null=True)
    due_at = models.DateTimeField(null=True)
    tries = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    applied_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, blank=True)

    class Meta:
        db_table = "notice"
        constraints = [
            models.UniqueConstraint(
                fields=["provider_account", "event_id"],
                condition=models.Q(verdict__in=["genuine", "foreign"]),
                name="notice_event_once",
            ),
            models.UniqueConstraint(
                fields=["provider_account", "event_id", "digest"],
                condition=models.Q(verdict="odd"),
                name="notice_odd_once",
            ),
            models.CheckConstraint(
                name="notice_verdict_known",
                condition=models.Q(verdict__in=["genuine", "foreign", "odd"]),
            ),
            models.CheckConstraint(
                name="notice_due_or_applied",
                condition=models.Q(due_at__isnull=True, applied_at__isnull=False)
                | models.Q(due_at__isnull=False, applied_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(applied_at__isnull=True),
                name="notice_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider_account} {self.event_id}"


class NoticeRefused(models.Model):
    """How many notices an account's door turned away in one minute, by reason.

    Reasons: forged, stale, unreadable, too_large.
    """

    provider_account = models.CharField(max_length=64)
    reason = models.CharField(max_length=16)
    minute = models.DateTimeField()
    count = models.IntegerField(default=1)

    class Meta:
        db_table = "notice_refused"
        constraints = [
            models.UniqueConstraint(
                fields=["provider_account", "reason", "minute"], name="notice_refused_minute"
            )
        ]
