"""The merchant's facts, as fed, and our own version of them."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from refunds.models.loading import Loaded


class Order(Loaded):
    """`version` moves by one whenever the refundable facts move; each move names its cause."""

    ref = models.CharField(max_length=128, unique=True)
    version = models.BigIntegerField(default=1)
    feed_seq = models.BigIntegerField(null=True)
    facts_as_of = models.DateTimeField(null=True)
    currency = models.CharField(max_length=3)
    customer_ref = models.CharField(max_length=128, blank=True, db_index=True)
    frozen = models.BooleanField(default=False)
    return_state = models.CharField(max_length=64, blank=True)
    fulfilment_state = models.CharField(max_length=64, blank=True)
    placed_at = models.DateTimeField(null=True)
    lines = models.JSONField(default=list)
    facts = models.JSONField(default=list)
    links = models.JSONField(default=dict)
    snapshot_digest = models.BinaryField(max_length=32, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "orders"

    def __str__(self) -> str:
        return self.ref


class OrderMove(models.Model):
    """Why the order's version became `version`. Written in the transaction that bumps it.

    Causes: first_seen feed reserved released external taken_back contradicted difference
    dispute capture_reversed frozen unfrozen. `detail` holds old and new values of a feed.
    """

    # In the database the constraint order_move_version.
    pk = models.CompositePrimaryKey("order_id", "version")
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="moves", db_index=False)
    version = models.BigIntegerField()
    cause = models.CharField(max_length=32)
    operation = models.ForeignKey(
        "Operation", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    amount_minor = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=160)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        db_table = "order_move"
        # Rows come in the order of time: the standing questions read the last minutes by it.
        indexes = [BrinIndex(fields=["at"], name="order_move_by_time", autosummarize=True)]


class Payment(Loaded):
    """One captured payment of an order. Amounts in minor units of its own currency.

    No CHECK holds refunded + held under captured: truth from outside must be storable.
    The cap is in the claim statement. No index stands over what every refund changes, the amounts:
    all the others would be written with each change.
    """

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="payments")
    provider_account = models.CharField(max_length=64)
    ref = models.CharField(max_length=128)
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=16, default="captured")
    halted = models.BooleanField(default=False)
    captured_minor = models.BigIntegerField()
    refunded_minor = models.BigIntegerField(default=0)
    held_minor = models.BigIntegerField(default=0)
    captured_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "payment"
        indexes = [
            # For a reader who types the beginning of a reference, whatever the account and the
            # collation.
            models.Index(
                fields=["ref"], opclasses=["varchar_pattern_ops"], name="payment_ref_prefix"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["provider_account", "ref"], name="payment_ref"),
            models.CheckConstraint(
                name="payment_amounts_not_negative",
                condition=models.Q(captured_minor__gte=0, refunded_minor__gte=0, held_minor__gte=0),
            ),
            models.CheckConstraint(
                name="payment_state_known",
                condition=models.Q(state__in=["uncaptured", "captured", "disputed", "reversed"]),
            ),
        ]

    def __str__(self) -> str:
        return self.ref

    @property
    def available_minor(self) -> int:
        """What may still be refunded; negative when more went out than came in."""
        return self.captured_minor - self.refunded_minor - self.held_minor


class OverRefunded(models.Model):
    """A payment of which more went out, or was on its way, than came in, at some time.

    Written by a trigger of the payment whenever it happens; whether it is so now, its amounts say.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="over_refunded"
    )

    class Meta:
        db_table = "over_refunded"
