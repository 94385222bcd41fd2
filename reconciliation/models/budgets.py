"""How often each account is asked, and how its answers were lately."""

from __future__ import annotations

from django.db import models


class LookupBudget(models.Model):
    """One row per account, shared by every worker: `next_at` is when an even pace asks next."""

    account = models.CharField(max_length=64, primary_key=True)
    next_at = models.DateTimeField()

    class Meta:
        db_table = "lookup_budget"

    def __str__(self) -> str:
        return self.account


class LookupMinute(models.Model):
    """How many lookups of an account were made in one minute, and how many were not answered."""

    account = models.CharField(max_length=64)
    minute = models.DateTimeField()
    asked_count = models.IntegerField()
    ambiguous_count = models.IntegerField()

    class Meta:
        db_table = "lookup_minute"
        constraints = [
            models.UniqueConstraint(fields=["account", "minute"], name="lookup_minute_once")
        ]
