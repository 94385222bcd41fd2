"""What must be told because of what happened, and what was told to whom."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from refunds.models import Operation


class Consequence(models.Model):
    """Something happened that somebody may have to hear of. Written with it, or not at all.

    Triggers write one per event that anybody is told of (see `outbox_plan.SILENT`), approval,
    reason of a case, ruling that two must sign, alarm that is to be told, and pause of an account;
    `outbox.announce` writes the others. `seq` is the event's, whose row its own trigger alone
    writes; `name` is unique and identifies everything else. `expanded_at`: when it became
    deliveries, perhaps none.
    """

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    seq = models.IntegerField(null=True)
    kind = models.CharField(max_length=32)
    name = models.CharField(max_length=200, db_default="")
    words = models.JSONField(db_default=models.Value({}, output_field=models.JSONField()))
    created_at = models.DateTimeField(db_default=Now())
    expanded_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outbox"
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=~models.Q(name=""), name="outbox_once_a_name"
            ),
            models.CheckConstraint(
                name="outbox_is_identified",
                condition=models.Q(operation__isnull=False, seq__isnull=False)
                | (models.Q(seq__isnull=True) & ~models.Q(name="")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(expanded_at__isnull=True), name="outbox_waiting"
            )
        ]

    def __str__(self) -> str:
        return self.name or f"{self.operation_id}:{self.seq}"


class Delivery(models.Model):
    """One message to one receiver, under one id for all its tries: the receiver's `webhook-id`.

    States: waiting, sending (until `lease_until`), delivered, given_up. `collecting`: further
    lines for the same receiver join it until it is first sent. `fence` grows with every claim, so
    that a sender who comes back late records nothing. `last_because`: what came of the last try,
    empty before the first one and after a replay. Kinds: ticket_update agent_callback
    customer_message staff_message.
    """

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=32)
    receiver = models.CharField(max_length=160)
    pages = models.BooleanField(default=False)
    collecting = models.BooleanField(default=False)
    state = models.CharField(max_length=16, default="waiting")
    due_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0)
    try_count = models.IntegerField(default=0)
    last_because = models.CharField(max_length=300, blank=True)
    first_sent_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    replayed_by = models.CharField(max_length=160, blank=True)
    replayed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "outbox_delivery"
        constraints = [
            models.CheckConstraint(
                name="outbox_delivery_state_known",
                condition=models.Q(state__in=["waiting", "sending", "delivered", "given_up"]),
            ),
            models.CheckConstraint(
                name="outbox_delivery_sending_has_lease",
                condition=~models.Q(state="sending") | models.Q(lease_until__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["kind", "receiver"],
                condition=models.Q(collecting=True),
                name="outbox_delivery_one_collects",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"],
                condition=models.Q(state__in=["waiting", "sending"]),
                name="outbox_delivery_due",
            ),
            models.Index(fields=["state", "-created_at"], name="outbox_delivery_listed"),
            models.Index(fields=["kind", "receiver", "created_at"], name="outbox_delivery_pace"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Line(models.Model):
    """One thing that one receiver is told: once per consequence, kind and receiver, for ever."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="lines")
    consequence = models.ForeignKey(
        Consequence, on_delete=models.PROTECT, related_name="lines", db_index=False
    )
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, null=True, related_name="told_lines"
    )
    kind = models.CharField(max_length=32)
    receiver = models.CharField(max_length=160)
    about = models.CharField(max_length=64)
    text = models.CharField(max_length=1000)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        db_table = "outbox_line"
        constraints = [
            models.UniqueConstraint(
                fields=["consequence", "kind", "receiver"], name="outbox_line_told_once"
            )
        ]


class DeliveryTry(models.Model):
    """What came of one try, or who asked for another. Append-only."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="tries")
    no = models.IntegerField()
    by = models.CharField(max_length=160)
    delivered = models.BooleanField()
    because = models.CharField(max_length=300)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "outbox_try"
