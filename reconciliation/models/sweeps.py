"""How far an account's own lists have been read."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class AccountSweep(models.Model):
    """One reading of an account's refunds and disputes, again and again.

    `recent` reads on from where the last complete run began; `deep` reads weeks again, once a
    day. A run may take several steps: `what`, `page_cursor` say where it stands, `edge_at` the
    creation of the last refund that was read; `began_at` is NULL between runs. `covered_from`, `covered_until`: the last complete run has read everything
    created between them; nothing else moves them. `stood_by_at`: since when it is read at all.
    """

    provider_account = models.CharField(max_length=64)
    kind = models.CharField(max_length=8)
    due_at = models.DateTimeField()
    busy_until = models.DateTimeField(null=True)
    began_at = models.DateTimeField(null=True)
    since = models.DateTimeField(null=True)
    what = models.CharField(max_length=16, default="refunds")
    page_cursor = models.CharField(max_length=255, blank=True)
    page_count = models.IntegerField(default=0)
    edge_at = models.DateTimeField(null=True)
    failure_count = models.IntegerField(default=0)
    because = models.CharField(max_length=300, blank=True)
    covered_from = models.DateTimeField(null=True)
    covered_until = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    saw_pause = models.BooleanField(default=False)
    stood_by_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "account_sweep"
        constraints = [
            models.UniqueConstraint(fields=["provider_account", "kind"], name="account_sweep_one"),
            models.CheckConstraint(
                name="account_sweep_kind_known", condition=models.Q(kind__in=["recent", "deep"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider_account} {self.kind}"
