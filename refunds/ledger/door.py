"""The one door: a guarded compare-and-swap and its event, in one statement.

Losing the race is an exception, never a shrug. Lock order everywhere: order, payment,
operation, attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from refunds.domain import states
from refunds.domain.errors import StaleOperation
from refunds.domain.fingerprint import canonical
from refunds.models import Operation, Order, Payment

# Columns that a move may set besides state and version.
_SETTABLE = frozenset(
    {
        "due_at",
        "not_before",
        "halted",
        "round",
        "send_version",
        "stale_cause",
        "pending_reason",
        "expires_at",
        "lookup_applied",
    }
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who caused a move: a kind of the state table, and a name for the trail."""

    kind: str
    name: str


POLICY = Actor(states.POLICY, "policy")
DISPATCHER = Actor(states.DISPATCHER, "dispatcher")
RECONCILER = Actor(states.RECONCILER, "reconciler")


@dataclass(slots=True)
class Locked:
    """An operation with its order and payment, all three rows locked in that order."""

    order: Order
    payment: Payment
    operation: Operation


def lock(operation_id: UUID) -> Locked:
    """Lock order, payment and operation; call inside a transaction.

    Raises Operation.DoesNotExist. The rows are read under the lock, so decisions made on them
    hold until the transaction ends.
    """
    ids = Operation.objects.values("order_id", "payment_id").get(pk=operation_id)
    order = Order.objects.select_for_update().get(pk=ids["order_id"])
    payment = Payment.objects.select_for_update().get(pk=ids["payment_id"])
    operation = Operation.objects.select_for_update().get(pk=operation_id)
    operation.order, operation.payment = order, payment
    return Locked(order, payment, operation)


def transition(
    operation: Operation,
    event: str,
    *,
    by: Actor,
    sets: dict[str, Any] | None = None,
    detail: dict[str, Any] | None = None,
    attempt_no: int | None = None,
    evidence_id: int | None = None,
) -> int:
    """Move `operation` from the state and version it was read with; returns the new version.

    Raises IllegalMove when the table has no such line for this actor, StaleOperation when
    another writer moved it first. The instance is updated to what was written.
    """
    rule = states.rule_for(event, operation.state, by.kind)
    sets = dict(sets or {})
    assert _SETTABLE.issuperset(sets), "a move sets only what a move may set"
    if rule.target in states.ENDED:
        sets.setdefault("due_at", None)
    extra = "".join(f", {name} = %({name})s" for name in sets)
    parameters = {
        **sets,
        "id": operation.pk,
        "version": operation.version,
        "event": event,
        "from_state": operation.state,
        "to_state": rule.target,
        "ended": rule.target in states.ENDED,
        "to_unknown": rule.target == states.UNKNOWN,
        "actor_kind": by.kind,
        "actor": by.name,
        "attempt_no": attempt_no,
        "evidence_id": evidence_id,
        "detail": canonical(detail or {}).decode(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOVE.replace("/*sets*/", extra), parameters)
        if cursor.fetchone() is None:
            raise StaleOperation(f"{operation.pk} is no longer {operation.state}")
    operation.version += 1
    operation.state = rule.target
    for name, value in sets.items():
        setattr(operation, name, value)
    return operation.version


_MOVE = """
WITH moved AS (
  UPDATE operation SET state = %(to_state)s, version = version + 1,
    entered_at = clock_timestamp(),
    blocks_equivalent = blocks_equivalent AND NOT %(ended)s,
    settled_at = CASE WHEN %(ended)s THEN clock_timestamp() END,
    unknown_since = CASE WHEN %(to_unknown)s THEN coalesce(unknown_since, clock_timestamp())
                         ELSE unknown_since END
    /*sets*/
  WHERE id = %(id)s AND state = %(from_state)s AND version = %(version)s
  RETURNING id, version
)
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,
                   attempt_no, evidence_id, detail, at)
SELECT id, version, %(event)s, %(from_state)s, %(to_state)s, %(actor_kind)s, %(actor)s,
       %(attempt_no)s, %(evidence_id)s, %(detail)s, clock_timestamp()
FROM moved RETURNING seq
"""
