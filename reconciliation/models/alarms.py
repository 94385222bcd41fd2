"""Alarms: what the monitors and the verifiers found, who has seen it, and that they ran at all."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from refunds.models import Person


class Alarm(models.Model):
    """One firing of one signal about one subject, from its first reading until it is quiet.

    `name` is a signal of `reconciliation.monitors.table`; `subject` an account, a payment, an
    order or nothing. `level`: warn or page; it only rises while the alarm lasts. `value` is the
    last reading in the signal's unit, `told_at` when somebody was told last.
    """

    name = models.CharField(max_length=48)
    subject = models.CharField(max_length=200, blank=True)
    level = models.CharField(max_length=8)
    value = models.FloatField()
    says = models.CharField(max_length=500)
    first_fired_at = models.DateTimeField()
    last_fired_at = models.DateTimeField()
    told_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "alarm"
        constraints = [
            models.UniqueConstraint(
                fields=["name", "subject"],
                condition=models.Q(ended_at__isnull=True),
                name="alarm_one_open",
            ),
            models.CheckConstraint(
                name="alarm_level_known", condition=models.Q(level__in=["warn", "page"])
            ),
        ]
        indexes = [models.Index(fields=["-ended_at", "-id"], name="alarm_by_end")]

    def __str__(self) -> str:
        return f"{self.name} {self.subject}".strip()


class Acknowledgement(models.Model):
    """A person has seen an alarm and says what they do about it. Append-only.

    It keeps the alarm from being told again until `until`; it changes nothing else.
    """

    alarm = models.ForeignKey(Alarm, on_delete=models.PROTECT, related_name="acknowledgements")
    by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    note = models.CharField(max_length=300)
    until = models.DateTimeField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "alarm_acknowledgement"

    def __str__(self) -> str:
        return f"{self.alarm_id} by {self.by_id}"


class SignalRun(models.Model):
    """When a monitor or verifier was last computed. A signal without an answer is an alarm too.

    `failed_since` is NULL while it can be computed; `error` then is empty. `value` is the last
    good one: the highest reading over all subjects, in the signal's unit.
    """

    name = models.CharField(max_length=48, primary_key=True)
    ran_at = models.DateTimeField()
    good_at = models.DateTimeField(null=True)
    value = models.FloatField(null=True)
    failed_since = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        db_table = "signal_run"

    def __str__(self) -> str:
        return self.name


class VerifierRound(models.Model):
    """How far a verifier has come: a whole reading of everything takes many batches.

    `cursor` is the key of the last thing that was checked in this round; `changes_until` the
    instant up to which changed things were checked. `checked_count` and `found_count` are this
    round's, the `last_` ones those of the last round that came to its end.
    """

    name = models.CharField(max_length=48, primary_key=True)
    cursor = models.CharField(max_length=200, blank=True)
    changes_until = models.DateTimeField(null=True)
    began_at = models.DateTimeField(null=True)
    checked_count = models.BigIntegerField(default=0)
    found_count = models.BigIntegerField(default=0)
    last_ended_at = models.DateTimeField(null=True)
    last_checked_count = models.BigIntegerField(default=0)
    last_found_count = models.BigIntegerField(default=0)

    class Meta:
        db_table = "verifier_round"

    def __str__(self) -> str:
        return self.name
