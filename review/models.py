"""What people pressed, what they were refused, and what they typed and did not press yet."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from refunds.models import Agent, Person


class Intent(models.Model):
    """One press of one drawn form, stored in the transaction of the act itself.

    The id was made when the form was drawn, so a second press of the same form finds the first.
    A press that was refused leaves no row: nothing was recorded then.
    """

    id = models.UUIDField(primary_key=True)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    form = models.CharField(max_length=32)
    object_ref = models.CharField(max_length=160)
    outcome = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "intent"

    def __str__(self) -> str:
        return f"{self.form} {self.object_ref}"


class RefusedAct(models.Model):
    """An act that its person may not do, stored although the act was rolled back."""

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    act = models.CharField(max_length=32)
    object_ref = models.CharField(max_length=160)
    code = models.CharField(max_length=32)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "refused_act"

    def __str__(self) -> str:
        return f"{self.act} {self.object_ref}: {self.code}"


class AgentAct(models.Model):
    """What an admin did to an agent or one of its keys; append-only, held by the database.

    `key_prefix` is empty for an act on the agent itself. `detail` says what changed, never a secret.
    """

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    act = models.CharField(max_length=32)
    key_prefix = models.CharField(max_length=8, blank=True)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "agent_act"

    def __str__(self) -> str:
        return f"{self.act} {self.key_prefix}"


class Draft(models.Model):
    """What one person typed into one form about one object and did not submit.

    Only its writer reads it; it is no part of the trail and is swept 7 days after `at`.
    """

    person = models.ForeignKey(Person, on_delete=models.CASCADE, related_name="+", db_index=False)
    form = models.CharField(max_length=32)
    object_ref = models.CharField(max_length=160)
    fields = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        db_table = "draft"
        constraints = [
            models.UniqueConstraint(
                name="draft_one_per_form", fields=["person", "form", "object_ref"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.form} {self.object_ref}"


class Preference(models.Model):
    """How one person wants the console; the time zone is the person's own column."""

    class Theme(models.TextChoices):
        SYSTEM = "", "As the device"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    person = models.OneToOneField(
        Person, on_delete=models.CASCADE, primary_key=True, related_name="preference"
    )
    shortcuts = models.BooleanField(default=True)
    theme = models.CharField(max_length=5, blank=True, default="", choices=Theme)

    class Meta:
        db_table = "preference"

    def __str__(self) -> str:
        return f"{self.person_id}"


class RoleChange(models.Model):
    """A change of what somebody may do, with what was before; append-only, held by the database.

    `before` and `after` are {"roles": [...], "active": bool}. One of kind `change` has an effect
    once another admin decided for it (RoleDecision); the other kinds are facts already.
    """

    class Kind(models.TextChoices):
        FOUND = "found", "founded"
        ADDED = "added", "added"
        CHANGE = "change", "proposed"
        PROVIDED = "provided", "by the sign-in provider"

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="role_changes")
    kind = models.CharField(max_length=8, choices=Kind)
    before = models.JSONField()
    after = models.JSONField()
    reason = models.CharField(max_length=300)
    proposed_by = models.ForeignKey(
        Person, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    proposed_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "role_change"
        constraints = [
            models.CheckConstraint(
                name="role_change_not_ones_own",
                condition=models.Q(proposed_by=None) | ~models.Q(proposed_by=models.F("person")),
            ),
            models.CheckConstraint(
                name="role_change_has_a_proposer",
                condition=~models.Q(kind="change") | models.Q(proposed_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person_id}: {self.kind}"


class RoleDecision(models.Model):
    """What another admin made of a proposed change; one for each, append-only.

    A trigger refuses the proposer and the person it is about.
    """

    change = models.OneToOneField(
        RoleChange, on_delete=models.PROTECT, primary_key=True, related_name="decision"
    )
    by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    confirmed = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "role_decision"

    def __str__(self) -> str:
        return f"{self.change_id}: {'confirmed' if self.confirmed else 'declined'}"
