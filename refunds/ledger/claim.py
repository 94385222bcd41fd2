"""The claim: authorized -> submitting, all or nothing, in one statement (rules 1, 4, 34, 36)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection
from psycopg import errors as pg

from refunds import prepared
from refunds.domain.contract import ProviderContract
from refunds.domain.errors import ClaimRefused, CommitUnknown
from refunds.domain.fingerprint import canonical
from refunds.domain.limits import Limits
from refunds.ledger.siblings import EXPLAINED

# What every send needs, the first and any later one, of the rows o, p, r and a: it stands in the
# locked CTE of both statements. An approval counts only while it explains every move of the order
# since it was given, by the list of its own page; policy's own authority (quorum 0) has seen no
# list and forgives nothing.
_EVERY_SEND = """NOT o.halted
    AND (o.quorum > 0 OR r.version = o.send_version) AND NOT r.frozen
    AND p.state = 'captured' AND NOT p.halted
    AND coalesce(a.pause_kind, '') = ''
    AND NOT EXISTS (SELECT FROM sending_stop WHERE ended_at IS NULL)
    AND NOT EXISTS (SELECT FROM quarantine WHERE lifted_at IS NULL)
    AND (o.agent_id IS NULL OR EXISTS (
      SELECT FROM agent g JOIN person w ON w.id = g.owner_id
      WHERE g.id = o.agent_id AND g.active AND w.is_active))
    AND (o.proposer_id IS NULL OR EXISTS (
      SELECT FROM person w WHERE w.id = o.proposer_id AND w.is_active))
    AND o.expires_at > clock_timestamp()
    AND /*consent*/
"""
_PERSONS = """(SELECT count(*) >= o.quorum AND (o.tier < 3 OR count(DISTINCT c.as_role) = 2)
         FROM approval c JOIN person w ON w.id = c.approver_id AND w.is_active
         WHERE c.operation_id = o.id AND c.round = o.round AND c.fingerprint = o.fingerprint
           AND c.expires_at > clock_timestamp()
           AND EXISTS (SELECT FROM person_groups m JOIN auth_group q ON q.id = m.group_id
                       WHERE m.person_id = w.id AND q.name = c.as_role)
           AND /*explained*/)
""".replace("/*explained*/", EXPLAINED)
STANDS = _EVERY_SEND.replace("/*consent*/", _PERSONS)
# Where nobody has to sign, there is no approval to read: what one needs, and how many, never moves.
_NOBODYS = "o.quorum = 0 AND o.tier < 3"

# The attempt of the operation that `moved` shows, and the contract that it is made under.
TRIED = """tried AS (
  INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,
                       account_identity, contract_hash)
  SELECT id, no, version, clock_timestamp(),
         clock_timestamp() + %(send)s::float8 * interval '1 second',
         clock_timestamp() + %(lease)s::float8 * interval '1 second',
         %(identity)s::jsonb, %(contract_hash)s::bytea FROM moved
), known AS (
  INSERT INTO known_contract (hash, name, facts)
  SELECT %(contract_hash)s::bytea, %(contract_name)s::text, %(contract_facts)s::jsonb FROM moved
  ON CONFLICT (hash) DO NOTHING
)"""

# One locked CTE holds every condition, and every write hangs on its row: two writes with a
# condition each would be two decisions. What must be absent is read from the locked row or is
# older than this statement by nature (a refused attempt, an open stop).
# A reservation that is already held is kept: the second send takes no money again (rule 36).
_CLAIM = """
WITH ready AS MATERIALIZED (
  SELECT o.id, o.order_id, o.payment_id, o.amount_minor, o.attempt_count + 1 AS no,
         r.version AS order_version, s.state IS DISTINCT FROM 'held' AS fresh,
         s.operation_id IS NULL AS first
  FROM operation o
  JOIN payment p ON p.id = o.payment_id
  JOIN orders r ON r.id = o.order_id
  LEFT JOIN provider_account a ON a.name = o.provider_account
  LEFT JOIN reservation s ON s.operation_id = o.id
  WHERE o.id = %(id)s::uuid AND o.state = 'authorized'
    AND (o.not_before IS NULL OR o.not_before <= clock_timestamp())
    AND (s.state = 'held'
         OR p.captured_minor - p.refunded_minor - p.held_minor >= o.amount_minor)
    AND NOT EXISTS (
      SELECT FROM attempt t WHERE t.operation_id = o.id
        AND (t.outcome = 'refused'  -- for good, whatever else is known of it (rule 34)
             OR (t.settled_by_evidence IS NULL
                 AND coalesce(t.outcome NOT IN ('not_sent', 'turned_away'), true))))
    AND /*stands*/
  FOR UPDATE OF r, p, o
), moved AS (
  UPDATE operation o SET state = 'submitting', version = o.version + 1, attempt_count = y.no,
    send_version = CASE WHEN y.fresh THEN y.order_version + 1 ELSE o.send_version END,
    entered_at = clock_timestamp(), not_before = NULL,
    due_at = clock_timestamp() + %(lease)s::float8 * interval '1 second'
  FROM ready y WHERE o.id = y.id RETURNING o.id, o.version, y.no
), money AS (
  UPDATE payment p SET held_minor = p.held_minor + y.amount_minor
  FROM ready y WHERE p.id = y.payment_id AND y.fresh
), hold AS (
  INSERT INTO reservation (operation_id, payment_id, amount_minor, state)
  SELECT id, payment_id, amount_minor, 'held' FROM ready WHERE first
), again AS (
  UPDATE reservation s SET state = 'held'
  FROM ready y WHERE s.operation_id = y.id AND y.fresh AND NOT y.first
), bump AS (
  UPDATE orders r SET version = r.version + 1 FROM ready y WHERE r.id = y.order_id AND y.fresh
  RETURNING r.id, r.version
), caused AS (
  INSERT INTO order_move (order_id, version, cause, operation_id, amount_minor, actor, detail, at)
  SELECT b.id, b.version, 'reserved', y.id, y.amount_minor, %(actor)s::text, '{}', clock_timestamp()
  FROM bump b, ready y
), /*tried*/, noted AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,
                     attempt_no, detail, at)
  SELECT id, version, 'submission_started', 'authorized', 'submitting', 'dispatcher', %(actor)s::text,
         no, '{}', clock_timestamp() FROM moved
)
SELECT version, no, clock_timestamp() FROM moved
""".replace("/*tried*/", TRIED)
CLAIM = _CLAIM.replace("/*stands*/", STANDS)
_OF_POLICY = _CLAIM.replace("/*stands*/", _EVERY_SEND.replace("/*consent*/", _NOBODYS))


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send once: `fence` is the operation's version made by this claim, `at` when it
    was made by the database's clock."""

    operation_id: UUID
    fence: int
    no: int
    at: datetime


def claim(
    operation_id: UUID,
    *,
    worker: str,
    identity: dict[str, Any],
    contract: ProviderContract,
    limits: Limits,
    needs_a_person: bool = True,
) -> Claim:
    """Claim an authorized operation for one send; committed when this returns.

    `needs_a_person` is False for what policy alone approved: a cheaper statement, which refuses
    whatever else it is called with.

    Raises ClaimRefused when any condition does not hold (nothing happened), CommitUnknown when
    the database did not confirm: then nothing may be sent, and the row, if it exists, is found
    by its lease (rule 2).
    """
    return permitted(
        CLAIM if needs_a_person else _OF_POLICY,
        operation_id,
        attempt_of(worker, identity, contract, limits),
        run=prepared.one,
    )


def attempt_of(
    worker: str, identity: dict[str, Any], contract: ProviderContract, limits: Limits
) -> dict[str, Any]:
    """What the row of a new attempt says, as parameters of a statement that permits a send."""
    return {
        "actor": worker,
        "lease": limits.lease_seconds,
        "send": limits.send_deadline_seconds,
        "identity": canonical(identity).decode(),
    } | _as_known(contract)


@cache
def _as_known(contract: ProviderContract) -> dict[str, Any]:
    """A contract as the table of known ones has it."""
    return {
        "contract_hash": contract.hash(),
        "contract_name": contract.name,
        "contract_facts": canonical(contract.facts()).decode(),
    }


def _planned_anew(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def permitted(
    statement: str,
    operation_id: UUID,
    parameters: dict[str, Any],
    *,
    run: Callable[[str, dict[str, Any]], tuple[Any, ...] | None] = _planned_anew,
) -> Claim:
    """Run a statement that permits one send, as a commit of its own. Raises as `claim` does."""
    assert not connection.in_atomic_block, "a claim commits by itself, before any byte is sent"
    try:
        row = run(statement, parameters | {"id": operation_id})
    except OperationalError as error:
        if isinstance(error.__cause__, pg.LockNotAvailable | pg.DeadlockDetected):
            raise ClaimRefused(f"{operation_id} is being changed by somebody else") from error
        connection.close()
        raise CommitUnknown(f"the claim of {operation_id} was not confirmed") from error
    if row is None:
        raise ClaimRefused(str(operation_id))
    return Claim(operation_id, fence=row[0], no=row[1], at=row[2])
