"""What may stop sending: an account's pause, the big stop, a quarantine."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ProviderAccount(models.Model):
    """The sending state of one account.

    A pause is `outage` (ends by itself when a probe is answered), `no_credential` (ends when one
    is set), `credential` (the provider refused it: ends by a person), `verifier` (the books
    contradict each other: ends by a person), `duplicate` (one request was paid twice: ends by a
    person) or `person`.
    """

    name = models.CharField(max_length=64, primary_key=True)
    pause_kind = models.CharField(max_length=16, blank=True)
    pause_reason = models.CharField(max_length=300, blank=True)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=160, blank=True)
    probe_at = models.DateTimeField(null=True)
    not_executed_in_row = models.IntegerField(default=0)

    class Meta:
        db_table = "provider_account"

    def __str__(self) -> str:
        return self.name


class SendingStop(models.Model):
    """The big stop: one press halts every send; another person ends it."""

    stopped_by = models.CharField(max_length=160)
    reason = models.CharField(max_length=500)
    stopped_at = models.DateTimeField(db_default=Now())
    ended_by = models.CharField(max_length=160, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "sending_stop"
        constraints = [
            models.UniqueConstraint(
                models.Value(1),
                condition=models.Q(ended_at__isnull=True),
                name="sending_stop_one_open",
            ),
            models.CheckConstraint(
                name="sending_stop_ended_by_another",
                condition=models.Q(ended_at__isnull=True)
                | ~models.Q(ended_by=models.F("stopped_by")),
            ),
        ]


class Quarantine(models.Model):
    """The database may have lost its tail (rule 3): no claim until it is lifted by two people.

    `detail` says what was noticed: `known_until` is when the newest event before the loss was
    written. One person asks to lift it (`asked_by`, `asked_at`), having compared the accounts of
    `by_hand` with the provider; another one lifts it.
    """

    reason = models.CharField(max_length=500)
    detail = models.JSONField(default=dict)
    began_at = models.DateTimeField(db_default=Now())
    by_hand = models.JSONField(db_default=models.Value([], output_field=models.JSONField()))
    asked_by = models.CharField(max_length=160, blank=True, db_default="")
    asked_at = models.DateTimeField(null=True)
    lifted_by = models.CharField(max_length=160, blank=True)
    lifted_with = models.CharField(max_length=160, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "quarantine"
        constraints = [
            models.UniqueConstraint(
                models.Value(1),
                condition=models.Q(lifted_at__isnull=True),
                name="quarantine_one_open",
            ),
            models.CheckConstraint(
                name="quarantine_lifted_by_two",
                condition=models.Q(lifted_at__isnull=True)
                | ~models.Q(lifted_by=models.F("lifted_with")),
            ),
        ]
