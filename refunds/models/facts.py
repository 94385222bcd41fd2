"""What we rely on about a provider: each contract that was ever sent under, and accepted figures."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now

from refunds.models.people import Person

VALID_MAX = timedelta(days=180)


class KnownContract(models.Model):
    """A contract that attempts were recorded under, by its hash: later versions do not rewrite it.

    Written by the statements that record an attempt, once per contract.
    """

    hash = models.BinaryField(primary_key=True, max_length=32)
    name = models.CharField(max_length=64)
    facts = models.JSONField()
    first_used_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "known_contract"

    def __str__(self) -> str:
        return self.name


class AcceptedFact(models.Model):
    """A figure for one fact of one account that its provider does not state, accepted by two people.

    It counts from `confirmed_at` until `valid_until`, unless withdrawn; `scope` names the one kind
    of act that may rest on it. Rows are never edited otherwise and never deleted: events name them.
    """

    account = models.CharField(max_length=64)
    fact = models.CharField(max_length=16)
    seconds = models.IntegerField()
    scope = models.CharField(max_length=16)
    reason = models.CharField(max_length=500)
    proposed_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(db_default=Now())
    confirmed_by = models.ForeignKey(Person, on_delete=models.PROTECT, null=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True)
    valid_until = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.CharField(max_length=160, blank=True)
    withdrawn_because = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "accepted_fact"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "fact", "scope"],
                condition=models.Q(withdrawn_at__isnull=True),
                name="accepted_fact_one_open",
            ),
            models.CheckConstraint(
                name="accepted_fact_may_be_accepted",
                condition=models.Q(
                    fact__in=["flight_max", "lookup_lag"], scope__in=["resend", "absence"]
                )
                & models.Q(seconds__gt=0),
            ),
            models.CheckConstraint(
                name="accepted_fact_by_two",
                condition=models.Q(confirmed_by__isnull=True, confirmed_at__isnull=True)
                | (
                    models.Q(confirmed_by__isnull=False, confirmed_at__isnull=False)
                    & ~models.Q(confirmed_by=models.F("proposed_by"))
                ),
            ),
            models.CheckConstraint(
                name="accepted_fact_not_for_ever",
                condition=models.Q(valid_until__lte=models.F("proposed_at") + VALID_MAX),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account}: {self.fact} {self.seconds} s for {self.scope}"
