"""What people did about a case: every step, what they attached, and what they ruled. Append-only."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from reconciliation.models.cases import Case
from refunds.models import Person

KINDS = (
    "claimed",
    "released",
    "taken_over",
    "assigned",
    "noted",
    "checked",
    "snoozed",
    "escalated",
    "attached",
    "ruled",
    "signed",
    "declined",
    "voided",
    "lapsed",
    "closed",
)
# A claim, a ruling and whatever ends one change what others may do; a note or a look does not.
MOVES_VERSION = frozenset(KINDS) - {"noted", "checked"}
# What a ruling can say; see `reconciliation.choices`.
CHOICES = (
    "happened",
    "not_happened",
    "different",
    "accept_figure",
    "correct",
    "still_unknown",
    "explained",
    "not_ours",
    "recovered",
    "written_off",
    "attach",
    "external",
    "wrong_account",
    "resume",
    "remedy",
)
# No one person rules these, whatever the amount.
ALWAYS_TWO = ("not_happened", "different", "accept_figure", "correct")


class CaseEvent(models.Model):
    """One step of the work on a case, by a person or by the machine (`person` is NULL then).

    `intent` is the press that caused it; `detail` says what was typed and what was before.
    """

    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=160)
    person = models.ForeignKey(
        Person, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    intent = models.UUIDField(null=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "case_event"
        constraints = [
            models.CheckConstraint(
                name="case_event_kind_known", condition=models.Q(kind__in=list(KINDS))
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.case_id}"


class Statement(models.Model):
    """A file somebody got from a provider, stored once for its content; never changed.

    `media_type` is told by the content, not by a name: PDF, PNG or a message (EML).
    """

    sha256 = models.BinaryField(max_length=32, unique=True)
    media_type = models.CharField(max_length=32)
    content = models.BinaryField()
    stored_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "statement"
        constraints = [
            models.CheckConstraint(
                name="statement_type_known",
                condition=models.Q(
                    media_type__in=["application/pdf", "image/png", "message/rfc822"]
                ),
            )
        ]

    def __str__(self) -> str:
        return bytes(self.sha256).hex()[:12]


class CaseStatement(models.Model):
    """A statement that stands beside a case; `name` is what its file was called."""

    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="statements")
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "case_statement"
        constraints = [
            models.UniqueConstraint(fields=["case", "statement"], name="case_statement_once")
        ]

    def __str__(self) -> str:
        return self.name


class Ruling(models.Model):
    """What a person says happened, with the evidence that was on the screen. Append-only.

    `people` is how many must sign. `said` holds the choice's own fields (ref, amount_minor,
    testimony, ticket, kind, reference); `shown` the evidence by id and the plan that the page
    printed; `evidence_digest` is what the second signature must find again.
    """

    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="rulings")
    choice = models.CharField(max_length=16)
    reason = models.CharField(max_length=500)
    said = models.JSONField(default=dict)
    shown = models.JSONField()
    evidence_digest = models.BinaryField(max_length=32)
    operation_version = models.IntegerField(null=True)
    people = models.SmallIntegerField()
    first_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    intent = models.UUIDField(null=True)
    at = models.DateTimeField(db_default=Now())
    lapses_at = models.DateTimeField()

    class Meta:
        db_table = "case_ruling"
        constraints = [
            models.CheckConstraint(
                name="case_ruling_choice_known", condition=models.Q(choice__in=list(CHOICES))
            ),
            models.CheckConstraint(
                name="case_ruling_people", condition=models.Q(people__in=[1, 2])
            ),
            models.CheckConstraint(
                name="case_ruling_always_two",
                condition=~models.Q(choice__in=list(ALWAYS_TWO)) | models.Q(people=2),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.choice} {self.case_id}"


class RulingEnd(models.Model):
    """How a ruling ended, once: in force, declined, voided by new evidence, or lapsed.

    `by` is the second signer (the only one where one is enough), or who declined.
    """

    ruling = models.OneToOneField(
        Ruling, on_delete=models.PROTECT, primary_key=True, related_name="end"
    )
    outcome = models.CharField(max_length=8)
    by = models.ForeignKey(
        Person, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    because = models.CharField(max_length=500, blank=True)
    intent = models.UUIDField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "case_ruling_end"
        constraints = [
            models.CheckConstraint(
                name="case_ruling_end_known",
                condition=models.Q(outcome__in=["in_force", "declined", "voided", "lapsed"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.outcome} {self.ruling_id}"
