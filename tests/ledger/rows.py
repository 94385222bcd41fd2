"""Rows as they are stored: whole tables to compare, and histories that no verb makes today.

What is written here passes every guard of the database; nothing is set aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from refunds import dispatch
from refunds.domain.fingerprint import canonical
from refunds.ledger import Claim
from refunds.models import Attempt, Evidence, Operation, Payment, Person, Reservation
from refunds.providers import registry

LEDGER = (
    *("orders", "order_move", "payment", "operation", "event", "attempt", "evidence"),
    *("approval", "reservation", "provider_refund", "policy_check", "proposal"),
    *("provider_account", "sending_stop", "quarantine", "review_case"),
)


def everything() -> dict[str, list[str]]:
    """Every row of the ledger as text."""
    found = {}
    with connection.cursor() as cursor:
        for table in LEDGER:
            cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1")
            found[table] = [row[0] for row in cursor.fetchall()]
    return found


def history(operation: Operation) -> list[str]:
    """The events of an operation, oldest first."""
    return list(operation.events.order_by("seq").values_list("event", flat=True))


def outcomes(operation: Operation) -> list[str | None]:
    """The outcome of each attempt, in order."""
    attempts = Attempt.objects.filter(operation=operation).order_by("no")
    return list(attempts.values_list("outcome", flat=True))


def state_of(operation: Operation) -> str:
    operation.refresh_from_db()
    return operation.state


def held(operation: Operation) -> tuple[int, str]:
    """What the payment holds, and the state of the operation's reservation."""
    payment = Payment.objects.get(pk=operation.payment_id)
    return payment.held_minor, Reservation.objects.get(operation=operation).state


def the_answer(operation: Operation) -> Evidence:
    """The stored answer of an operation that has one."""
    return Evidence.objects.get(operation=operation, kind="answer")


def held_equals_reservations() -> bool:
    """Whether each payment holds exactly what its held reservations say."""
    for payment in Payment.objects.all():
        held = Reservation.objects.filter(payment=payment, state="held")
        if payment.held_minor != sum(held.values_list("amount_minor", flat=True)):
            return False
    return True


def poll(condition: Callable[[], bool], what: str, deadline_seconds: float = 60) -> None:
    """Wait until the condition holds; fails after the deadline."""
    give_up_at = time.monotonic() + deadline_seconds
    while not condition():
        assert time.monotonic() < give_up_at, f"waited for {what}"
        time.sleep(0.005)


_RESUBMIT = """
WITH moved AS (
  UPDATE operation o SET state = 'submitting', version = version + 1,
    attempt_count = attempt_count + 1, entered_at = clock_timestamp(),
    due_at = clock_timestamp() + %(lease)s * interval '1 second'
  WHERE o.id = %(id)s AND o.state = 'unknown' RETURNING o.id, o.version, o.attempt_count
), tried AS (
  INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,
                       account_identity, contract_hash)
  SELECT m.id, m.attempt_count, m.version, clock_timestamp(), clock_timestamp() + interval '2 s',
         clock_timestamp() + %(lease)s * interval '1 second', t.account_identity, t.contract_hash
  FROM moved m JOIN attempt t ON t.operation_id = m.id
  WHERE t.no = (SELECT min(no) FROM attempt f WHERE f.operation_id = m.id)
), noted AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, attempt_no,
                     detail, at)
  SELECT id, version, 'resubmitted', 'unknown', 'submitting', 'dispatcher', 'test', attempt_count,
         '{}', clock_timestamp() FROM moved
)
SELECT version, attempt_count, clock_timestamp() FROM moved
"""


def resubmitted(operation: Operation) -> Claim:
    """unknown -> submitting with one more attempt: the resend inside the key window."""
    with connection.cursor() as cursor:
        cursor.execute(_RESUBMIT, {"id": operation.pk, "lease": settings.LIMITS.lease_seconds})
        fence, no, at = cursor.fetchone()
    return Claim(operation.pk, fence=fence, no=no, at=at)


def sent(claim: Claim) -> str:
    """Send under a claim that is already there, and record the answer; the event or `late`."""
    operation = Operation.objects.select_related("order", "payment").get(pk=claim.operation_id)
    account = registry.account(operation.provider_account)
    deadline = time.monotonic() + settings.LIMITS.send_deadline_seconds
    return dispatch._submit(operation, account, claim, deadline)


def earlier_attempt(operation: Operation, outcome: str, recorded_at: datetime) -> None:
    """An attempt of the past that ended with this outcome, as the operation's next number."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE operation SET attempt_count = attempt_count + 1 WHERE id = %s", [operation.pk]
        )
        cursor.execute(
            "INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,"
            " closed_at, outcome, stop_proof_at, account_identity, contract_hash)"
            " SELECT id, attempt_count, version, %(at)s, %(at)s, %(at)s, %(at)s, %(outcome)s,"
            " %(at)s, %(identity)s, %(hash)s FROM operation WHERE id = %(id)s",
            _attempt_values(operation) | {"at": recorded_at, "outcome": outcome},
        )
    operation.refresh_from_db()


def _attempt_values(operation: Operation) -> dict[str, Any]:
    account = registry.account(operation.provider_account)
    return {
        "id": operation.pk,
        "identity": canonical(account.identity()).decode(),
        "hash": account.contract.hash(),
    }


_PROVED_ABSENT = """
WITH moved AS (
  UPDATE operation o SET state = 'authorized', version = version + 1,
    entered_at = clock_timestamp(), due_at = clock_timestamp()
  WHERE o.id = %(id)s AND o.state = 'unknown' RETURNING o.id, o.version
), covered AS (
  UPDATE attempt t SET settled_by_evidence = %(evidence)s FROM moved m
  WHERE t.operation_id = m.id AND t.outcome IS DISTINCT FROM 'refused'
), noted AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,
                     evidence_id, detail, at)
  SELECT id, version, 'proved_absent', 'unknown', 'authorized', 'reconciler', 'test',
         %(evidence)s, '{}', clock_timestamp() FROM moved
)
SELECT version FROM moved
"""


def proved_absent(operation: Operation, evidence_id: int) -> None:
    """unknown -> authorized on a stored absence that covers every attempt so far."""
    with connection.cursor() as cursor:
        cursor.execute(_PROVED_ABSENT, {"id": operation.pk, "evidence": evidence_id})
        assert cursor.fetchone() is not None
    operation.refresh_from_db()


_APPROVAL = """
INSERT INTO approval (operation_id, round, approver_id, as_role, fingerprint, order_version, shown,
                      shown_operations, shown_amounts_minor, asked_by_approver,
                      separate_refund_confirmed, policy_version, expires_at)
SELECT id, round, %(person)s, %(role)s, fingerprint, 1, '{}', '{}', '{}', false, false, policy_version,
       clock_timestamp() + interval '1 day'
FROM operation WHERE id = %(id)s
"""
_APPROVED = """
WITH moved AS (
  UPDATE operation o SET state = 'authorized', version = o.version + 1, send_version = r.version
  FROM orders r WHERE o.id = %(id)s AND r.id = o.order_id AND o.state = 'awaiting_approval'
  RETURNING o.id, o.version
)
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, detail, at)
SELECT id, version, 'approved', 'awaiting_approval', 'authorized', 'approvers', 'test', '{}',
       clock_timestamp() FROM moved
"""


def approved_by_hand(operation: Operation, *given: tuple[Person, str]) -> None:
    """awaiting_approval -> authorized on these people's approvals in these roles, enough or not."""
    with connection.cursor() as cursor:
        for person, role in given:
            cursor.execute(_APPROVAL, {"id": operation.pk, "person": person.pk, "role": role})
        cursor.execute(_APPROVED, {"id": operation.pk})
    operation.refresh_from_db()
