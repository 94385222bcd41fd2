"""What people pressed, and what they were refused."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from refunds.models import Person


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
