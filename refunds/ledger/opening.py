"""Where an operation begins: one row, its keys and bytes for life, and what policy said of it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.db import connection

from refunds import prepared
from refunds.domain import states
from refunds.domain.judging import Judgement
from refunds.domain.policy import Policy
from refunds.ledger.identity import mint
from refunds.models import Operation, Payment
from refunds.proposal import Caller, ProposalRequest

# How long policy's own authority (tier 0) lasts before the dispatcher must have claimed.
_POLICY_AUTHORITY = timedelta(minutes=15)


def _where_to(judgement: Judgement, policy: Policy, now: datetime) -> dict[str, Any]:
    """State, event and clocks of the second event, which follows the proposal at once."""
    if judgement.denied:
        return {
            "event": "policy_denied",
            "state": states.DENIED,
            "expires_at": now,
            "settled_at": now,
            "blocks_equivalent": False,
        }
    if judgement.cleared:
        until = now + _POLICY_AUTHORITY
        return {
            "event": "policy_cleared",
            "state": states.AUTHORIZED,
            "expires_at": until,
            "due_at": now,
        }
    until = now + timedelta(seconds=policy.proposal_valid_seconds)
    return {
        "event": "policy_held",
        "state": states.AWAITING_APPROVAL,
        "expires_at": until,
        "due_at": until,
    }


OPEN = """
WITH opened AS (
  INSERT INTO operation (/*columns*/) VALUES (/*values*/)
), told AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, detail, at)
  VALUES (%(id)s::uuid, 1, 'proposed', 'none', 'proposed', 'caller', %(caller)s::text,
          %(why)s::jsonb, %(created_at)s::timestamptz),
         (%(id)s::uuid, 2, %(judged)s::text, 'proposed', %(state)s::text, 'policy', 'policy',
          %(verdict)s::jsonb, %(created_at)s::timestamptz)
), checked AS (
  INSERT INTO policy_check (operation_id, position, name, passed, says, inputs)
  SELECT %(id)s::uuid, c.position, c.name, c.passed, c.says, c.inputs
  FROM jsonb_to_recordset(%(checks)s::jsonb)
    AS c (position smallint, name text, passed boolean, says text, inputs jsonb)
)
INSERT INTO proposal (operation_id, agent_id, person_id, session_id, tool_call_id,
                      arguments_digest, created)
VALUES (%(id)s::uuid, %(agent_id)s::bigint, %(proposer_id)s::bigint, %(session)s::text,
        %(call)s::text, %(arguments_digest)s::bytea, true)
RETURNING operation_id
"""


def _with_columns(statement: str) -> str:
    """Every column of an operation, with its type: a new one is stored without being named here."""
    fields = Operation._meta.concrete_fields
    columns = ", ".join(each.attname for each in fields)
    values = ", ".join(f"%({each.attname})s::{each.db_type(connection)}" for each in fields)
    return statement.replace("/*columns*/", columns).replace("/*values*/", values)


@cache
def _statement() -> str:
    return _with_columns(OPEN)


@cache
def _usual() -> dict[str, Any]:
    """What a column holds where nothing else is said."""
    return {each.attname: each.get_default() for each in Operation._meta.concrete_fields}


def open_operation(
    request: ProposalRequest,
    caller: Caller,
    payment: Payment,
    judgement: Judgement,
    *,
    number: int,
    arguments_digest: bytes,
    policy: Policy,
    now: datetime,
    separate: Operation | None,
    remedy_of: Operation | None = None,
) -> Operation:
    """Store the operation with its first two events, every check and the call that asked for it,
    all at version 2, in one statement.

    The order's row is locked by the caller; `number` is that of the operation on its order,
    counted under that lock. Raises Refusal where the provider cannot express the amount.
    """
    order = payment.order
    where = _where_to(judgement, policy, now)
    event = where.pop("event")
    minted = mint(
        payment,
        amount_minor=request.amount_minor,
        currency=request.currency,
        reason_code=request.reason_code,
        request_ref=request.request_ref or f"request-{number}",
    )
    others = {
        "order": minted.pop("order"),
        "payment": minted.pop("payment"),
        "proposer": caller.person,
        "agent": caller.agent,
        "separate_from": separate,
        "remedy_of": remedy_of,
    }
    stored = (
        _usual()
        | minted
        | {f"{name}_id": other.pk for name, other in others.items() if other is not None}
        | {
            "reason_text": request.reason_text,
            "requested_by_kind": request.requested_by_kind,
            "requested_by_ref": request.requested_by_ref,
            "ticket_ref": request.ticket_ref,
            "run_ref": request.run_ref,
            "step_ref": request.step_ref,
            "claims": request.claims,
            "read_links": list(request.read_links),
            "agent_owner_id": caller.agent.owner_id if caller.agent else None,
            "policy_version": policy.version,
            "tier": judgement.tier,
            "quorum": judgement.quorum,
            "possible_repeat": judgement.possible_repeat,
            "version": 2,
            "entered_at": now,
            "created_at": now,
            "send_version": order.version if judgement.cleared else None,
        }
        | where
    )
    prepared.one(
        _statement(),
        stored
        | {
            "claims": json.dumps(request.claims),
            "caller": caller.actor,
            "why": json.dumps({"remedy_of": str(remedy_of.pk)} if remedy_of else {}),
            "judged": event,
            "verdict": json.dumps({"failed": judgement.failed_names(), "tier": judgement.tier}),
            "checks": _as_rows(judgement),
            "session": request.session_id,
            "call": request.tool_call_id,
            "arguments_digest": arguments_digest,
        },
    )
    # Made of a row, as a query makes it: by the names of its fields it takes three times as long.
    operation = Operation.from_db(
        connection.alias, tuple(_usual()), tuple(map(stored.get, _usual()))
    )
    operation._state.fields_cache.update(others)
    return operation


def _as_rows(judgement: Judgement) -> str:
    return json.dumps(
        [
            {
                "position": position,
                "name": check.name,
                "passed": check.passed,
                "says": check.says[:500],
                "inputs": check.inputs,
            }
            for position, check in enumerate(judgement.checks, 1)
        ]
    )
