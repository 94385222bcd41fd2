"""One row per intended refund, its history, its attempts, and the consents it got."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from refunds.domain import states
from refunds.models.loading import Loaded
from refunds.models.orders import Order, Payment
from refunds.models.people import Agent, Person


class Operation(Loaded):
    """One refund someone wants, for life: one business key, one provider key, one body.

    Written by `refunds.ledger` and created by `refunds.intake` only. At most five indexes: a
    column in any index predicate makes its update touch every index of the table.
    """

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=16, default="refund")
    business_key = models.CharField(max_length=320)
    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, related_name="operations", db_index=False
    )
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="operations", db_index=False
    )
    provider_account = models.CharField(max_length=64)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    reason_code = models.CharField(max_length=32)
    reason_text = models.CharField(max_length=500, blank=True)
    request_ref = models.CharField(max_length=128)
    requested_by_kind = models.CharField(max_length=16)
    requested_by_ref = models.CharField(max_length=128)
    ticket_ref = models.CharField(max_length=128, blank=True)
    run_ref = models.CharField(max_length=128, blank=True)
    step_ref = models.CharField(max_length=128, blank=True)
    claims = models.JSONField(default=dict)
    read_links = ArrayField(models.CharField(max_length=500), default=list)

    proposer = models.ForeignKey(
        Person, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    agent_owner = models.ForeignKey(
        Person, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    provider_key = models.CharField(max_length=36)
    body = models.BinaryField()
    fingerprint = models.BinaryField(max_length=32)
    policy_version = models.CharField(max_length=64)
    tier = models.SmallIntegerField()
    quorum = models.SmallIntegerField()
    possible_repeat = models.BooleanField(default=False)
    separate_from = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    # The refund whose money is still owed, where this one is the remedy.
    remedy_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="remedies", db_index=False
    )

    state = models.CharField(max_length=24)
    version = models.IntegerField()
    entered_at = models.DateTimeField(db_default=Now())
    round = models.SmallIntegerField(default=1)
    send_version = models.BigIntegerField(null=True)
    attempt_count = models.IntegerField(default=0)
    lookup_started = models.IntegerField(default=0)
    lookup_applied = models.IntegerField(default=0)
    failure_count = models.SmallIntegerField(default=0)
    halted = models.BooleanField(default=False)
    blocks_equivalent = models.BooleanField(default=True)
    stale_cause = models.CharField(max_length=32, blank=True)
    pending_reason = models.CharField(max_length=32, blank=True)
    expires_at = models.DateTimeField()
    not_before = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    unknown_since = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "operation"
        constraints = [
            # The business key is made of these two, which a trigger holds, and unique with them.
            models.UniqueConstraint(fields=["order", "request_ref"], name="operation_request"),
            # Over a flag that ends with the operation and is never set again: a set of live
            # states would make `contradicted` fail while a remedy is open.
            models.UniqueConstraint(
                fields=["payment", "amount_minor"],
                condition=models.Q(blocks_equivalent=True),
                name="operation_one_live_equivalent",
            ),
            models.CheckConstraint(
                name="operation_amount_positive", condition=models.Q(amount_minor__gt=0)
            ),
            models.CheckConstraint(
                name="operation_one_proposer",
                condition=models.Q(proposer__isnull=False, agent__isnull=True)
                | models.Q(proposer__isnull=True, agent__isnull=False, agent_owner__isnull=False),
            ),
            models.CheckConstraint(
                name="operation_key_form",
                condition=models.Q(provider_key__regex=r"^[A-Za-z0-9_-]{36}$"),
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "due_at", "id"],
                # Whatever has not ended is in it, so that no list of those reads the whole table,
                # and none leaves out what lost the instant at which it is looked at again.
                condition=models.Q(due_at__isnull=False) | models.Q(state__in=sorted(states.OPEN)),
                # What the counts of every page ask of those.
                include=["quorum", "round", "stale_cause", "unknown_since"],
                name="operation_due",
            )
        ]

    def __str__(self) -> str:
        return self.business_key

    @property
    def marker(self) -> str:
        """What travels in the body and lets a lookup recognise this refund as ours."""
        return str(self.id)


class Event(models.Model):
    """One move of one operation. Append-only; the head of an operation is its last event."""

    # In the database the constraint event_one_per_step.
    pk = models.CompositePrimaryKey("operation_id", "seq")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    seq = models.IntegerField()
    event = models.CharField(max_length=32)
    from_state = models.CharField(max_length=24)
    to_state = models.CharField(max_length=24)
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=160)
    attempt_no = models.IntegerField(null=True)
    evidence_id = models.BigIntegerField(null=True)
    detail = models.JSONField(db_default=models.Value({}, output_field=models.JSONField()))
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "event"
        # Rows come in the order of time: the standing questions read the last minutes by it.
        indexes = [
            BrinIndex(fields=["at"], name="event_by_time", autosummarize=True),
            # What a person rejected; every other event leaves it alone.
            models.Index(
                fields=["actor", "operation"],
                condition=models.Q(event="rejected"),
                name="event_rejected",
            ),
        ]
        constraints = [
            models.CheckConstraint(name="event_seq_from_one", condition=models.Q(seq__gte=1)),
            # Without it a first-looking event skips the chain (MATCH SIMPLE).
            models.CheckConstraint(
                name="event_first_from_none",
                condition=models.Q(seq=1, from_state="none")
                | (models.Q(seq__gt=1) & ~models.Q(from_state="none")),
            ),
        ]


class Attempt(models.Model):
    """One request intended for the wire. `outcome` is set once, by its own sender.

    A NULL outcome on a closed attempt is ambiguous for ever, unless a stored absence finding
    covers it (`settled_by_evidence`). It is opened while its operation is being sent under it
    and no other is open, which triggers hold: the operation's own row says by which attempt.
    """

    pk = models.CompositePrimaryKey("operation_id", "no")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="attempts", db_index=False
    )
    no = models.IntegerField()
    fence = models.IntegerField()
    recorded_at = models.DateTimeField()
    send_deadline = models.DateTimeField()
    lease_until = models.DateTimeField()
    connected_at = models.DateTimeField(null=True)
    first_byte_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, null=True)  # noqa: DJ001 - NULL means no answer yet
    stop_proof_at = models.DateTimeField(null=True)
    settled_by_evidence = models.BigIntegerField(null=True)
    account_identity = models.JSONField()
    contract_hash = models.BinaryField(max_length=32)

    class Meta:
        db_table = "attempt"
        # Rows come in the order of time: the standing questions read the last minutes by it.
        indexes = [BrinIndex(fields=["recorded_at"], name="attempt_by_time", autosummarize=True)]
        constraints = [
            models.CheckConstraint(name="attempt_no_from_one", condition=models.Q(no__gte=1)),
            models.CheckConstraint(
                name="attempt_outcome_known",
                condition=models.Q(outcome__isnull=True)
                | models.Q(
                    outcome__in=[
                        "confirmed",
                        "accepted",
                        "refused",
                        "turned_away",
                        "not_sent",
                        "unanswered",
                    ]
                ),
            ),
        ]


class Reservation(models.Model):
    """Money set aside for one operation; `payment.held_minor` is the sum of the held ones."""

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="reservation"
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="+", db_index=False)
    amount_minor = models.BigIntegerField()
    state = models.CharField(max_length=16)

    class Meta:
        db_table = "reservation"
        constraints = [
            models.CheckConstraint(
                name="reservation_state_known",
                condition=models.Q(state__in=["held", "booked", "released"]),
            )
        ]


class Approval(models.Model):
    """One person's yes to one fingerprint on one order version. Append-only.

    `shown_operations` are the order's other refunds that the page listed, `shown_amounts_minor`
    their amounts in the same order: their reservations do not end this approval.
    """

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="approvals", db_index=False
    )
    round = models.SmallIntegerField()
    approver = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+", db_index=False)
    as_role = models.CharField(max_length=16)
    fingerprint = models.BinaryField(max_length=32)
    order_version = models.BigIntegerField()
    shown = models.JSONField()
    shown_operations = ArrayField(models.UUIDField(), default=list)
    shown_amounts_minor = ArrayField(models.BigIntegerField(), default=list)
    asked_by_approver = models.BooleanField(default=False)
    separate_refund_confirmed = models.BooleanField(default=False)
    policy_version = models.CharField(max_length=64)
    expires_at = models.DateTimeField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "approval"
        constraints = [
            models.UniqueConstraint(
                fields=["operation", "round", "approver"], name="approval_once_a_round"
            ),
            models.CheckConstraint(
                name="approval_role_known", condition=models.Q(as_role__in=["lead", "finance"])
            ),
            models.CheckConstraint(
                name="approval_shown_with_amounts",
                condition=models.Q(shown_operations__len=models.F("shown_amounts_minor__len")),
            ),
        ]
        indexes = [models.Index(fields=["approver", "at"], name="approval_by_person")]


class PolicyCheck(models.Model):
    """One check as it was run, with its inputs. Append-only."""

    # In the database the constraint policy_check_position.
    pk = models.CompositePrimaryKey("operation_id", "position")
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="checks", db_index=False
    )
    position = models.SmallIntegerField()
    name = models.CharField(max_length=32)
    passed = models.BooleanField()
    says = models.CharField(max_length=500)
    inputs = models.JSONField()

    class Meta:
        db_table = "policy_check"


class Proposal(models.Model):
    """One call that asked for an operation: how the same call is recognised (R3).

    Identity is (agent or person, session, tool call): the agent and not the credential, so that
    rotating a key keeps it.
    """

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="proposals", db_index=False
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    person = models.ForeignKey(
        Person, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    session_id = models.CharField(max_length=128)
    tool_call_id = models.CharField(max_length=128)
    arguments_digest = models.BinaryField(max_length=32)
    created = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "proposal"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "session_id", "tool_call_id"],
                condition=models.Q(agent__isnull=False),
                name="proposal_call_of_agent",
            ),
            models.UniqueConstraint(
                fields=["person", "session_id", "tool_call_id"],
                condition=models.Q(person__isnull=False),
                name="proposal_call_of_person",
            ),
            models.CheckConstraint(
                name="proposal_one_caller",
                condition=models.Q(agent__isnull=True, person__isnull=False)
                | models.Q(agent__isnull=False, person__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "at"], name="proposal_by_agent"),
            models.Index(fields=["person", "at"], name="proposal_by_person"),
        ]
