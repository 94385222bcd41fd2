"""The answer: evidence always, the attempt's outcome once, a decision only where it still holds."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import Error, OperationalError, connection, transaction
from psycopg import errors as pg

from refunds import prepared
from refunds.domain.contract import ProviderContract
from refunds.domain.fingerprint import canonical
from refunds.domain.limits import Limits
from refunds.domain.outcome import Answer, Outcome, RawAnswer
from refunds.ledger.claim import Claim

_PROOF_PATIENCE_SECONDS = 20
_OF_THE_BODY = ("content-type", "content-length")
# Evidence is never fenced; the attempt belongs to its own sender; the move needs state, fence
# and attempt count (rules 13, 21, 30). Every value passes between the parts by RETURNING: all
# parts of one statement see one snapshot. A refusal releases money and therefore locks the
# order first; every other answer leaves what is available unchanged and does not.
# What some answers alone need stands between marks, and the others' statements lack it: a part
# that comes to nothing costs nearly as much as one that writes.
ANSWER = """
WITH seen AS (
  INSERT INTO evidence (operation_id, attempt_no, kind, started_at, body, facts)
  VALUES (%(id)s::uuid, %(no)s::integer, 'answer', %(started_at)s::timestamptz, %(body)s::bytea, %(facts)s::jsonb) RETURNING id
), here AS MATERIALIZED (
  SELECT o.id, o.order_id, o.payment_id, o.provider_account, o.amount_minor
  FROM operation o JOIN payment p ON p.id = o.payment_id JOIN orders r ON r.id = o.order_id
  WHERE o.id = %(id)s::uuid AND o.state = 'submitting' AND o.version = %(fence)s::integer
    AND o.attempt_count = %(no)s::integer
  FOR UPDATE OF /*refused>*/r, /*<*/p, o
), answered AS (
  UPDATE attempt t SET outcome = %(outcome)s::text, closed_at = coalesce(t.closed_at, clock_timestamp()),
    connected_at = %(connected_at)s::timestamptz, first_byte_at = %(first_byte_at)s::timestamptz,
    stop_proof_at = clock_timestamp()
  WHERE t.operation_id = %(id)s::uuid AND t.no = %(no)s::integer AND t.fence = %(fence)s::integer AND t.outcome IS NULL
    AND (SELECT count(*) FROM here) >= 0  -- lock order: operation before attempt
), /*weighed>*/others AS (
  SELECT
    coalesce(bool_and(coalesce(t.outcome IN ('not_sent', 'turned_away'), false)
                      OR (t.settled_by_evidence IS NOT NULL
                          AND t.outcome IS DISTINCT FROM 'refused')), true) AS not_executed,
    coalesce(bool_and(coalesce(t.outcome IN ('not_sent', 'turned_away', 'refused'), false)
                      OR t.settled_by_evidence IS NOT NULL
                      OR (coalesce(t.outcome, 'unanswered') = 'unanswered'
                          AND coalesce(clock_timestamp() <= k.ends AND k.ends >=
                            coalesce(t.stop_proof_at,
                                     t.send_deadline + %(idle)s::float8 * interval '1 second')
                            + %(flight)s::float8 * interval '1 second', false))), true)
      AS explained
  FROM attempt t CROSS JOIN (
    SELECT min(f.recorded_at) + %(keys_explain)s::float8 * interval '1 second' AS ends
    FROM attempt f WHERE f.operation_id = %(id)s::uuid) k
  WHERE t.operation_id = %(id)s::uuid AND t.no <> %(no)s::integer
), /*<*/verdict AS (
  SELECT h.*, /*plain>*/%(outcome)s::text/*<*//*weighed>*/CASE
      WHEN %(outcome)s::text = 'refused' AND x.explained THEN 'refused'
      WHEN %(outcome)s::text IN ('not_sent', 'turned_away') AND x.not_executed THEN 'not_executed'
      ELSE 'unanswered' END/*<*/ AS event
  FROM here h/*weighed>*/, others x/*<*/
), booked AS (
  INSERT INTO provider_refund (provider_account, ref, payment_id, operation_id, amount_minor,
                               provider_status, counts, provider_created_at)
  SELECT provider_account, %(ref)s::text, payment_id, id, amount_minor, %(provider_status)s::text,
         event = 'confirmed', %(provider_created_at)s::timestamptz
  FROM verdict WHERE event IN ('confirmed', 'accepted')
  ON CONFLICT DO NOTHING RETURNING operation_id
), fit AS (
  -- A refund that is known already (fed from outside, or found) is tied and counted by the
  -- reconciler, under the locks that this statement does not take: until then it is unknown.
  SELECT v.id, v.order_id, v.payment_id, v.amount_minor,
    CASE WHEN v.event IN ('confirmed', 'accepted') AND NOT EXISTS (SELECT FROM booked)
         THEN 'unanswered' ELSE v.event END AS event
  FROM verdict v
), go AS (
  SELECT v.*, m.to_state, m.to_state IN ('succeeded', 'failed') AS ended
  FROM fit v JOIN (VALUES ('confirmed', 'succeeded'), ('accepted', 'pending'),
    ('refused', 'failed'), ('not_executed', 'authorized'), ('unanswered', 'unknown'))
    AS m (event, to_state) ON m.event = v.event
), moved AS (
  UPDATE operation o SET state = g.to_state, version = o.version + 1,
    entered_at = clock_timestamp(),
    blocks_equivalent = o.blocks_equivalent AND NOT g.ended,
    settled_at = CASE WHEN g.ended THEN clock_timestamp() END,
    unknown_since = CASE WHEN g.event = 'unanswered'
                         THEN coalesce(o.unknown_since, clock_timestamp()) ELSE o.unknown_since END,
    pending_reason = CASE WHEN g.event = 'accepted' THEN %(pending_reason)s::text ELSE '' END,
    not_before = CASE WHEN g.event = 'not_executed'
                      THEN clock_timestamp() + %(backoff)s::float8 * interval '1 second' END,
    due_at = CASE WHEN g.ended THEN NULL
                  WHEN g.event = 'not_executed'
                  THEN clock_timestamp() + %(backoff)s::float8 * interval '1 second'
                  ELSE clock_timestamp() + %(look_after)s::float8 * interval '1 second' END
  FROM go g WHERE o.id = g.id
  RETURNING o.id, o.order_id, o.version, g.event, o.state AS to_state
), money AS (
  UPDATE payment p SET held_minor = p.held_minor - g.amount_minor,
    refunded_minor = p.refunded_minor
      + CASE WHEN g.event = 'confirmed' THEN g.amount_minor ELSE 0 END
  FROM go g WHERE p.id = g.payment_id AND g.event IN ('confirmed', 'refused')
), hold AS (
  UPDATE reservation s SET state = CASE WHEN g.event = 'confirmed' THEN 'booked' ELSE 'released' END
  FROM go g WHERE s.operation_id = g.id AND g.event IN ('confirmed', 'refused')
), /*refused>*/bump AS (
  UPDATE orders r SET version = r.version + 1
  FROM go g WHERE r.id = g.order_id AND g.event = 'refused' RETURNING r.id, r.version
), caused AS (
  INSERT INTO order_move (order_id, version, cause, operation_id, amount_minor, actor, detail, at)
  SELECT b.id, b.version, 'released', g.id, g.amount_minor, %(actor)s::text, '{}', clock_timestamp()
  FROM bump b, go g
), /*<*/noted AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,
                     attempt_no, evidence_id, detail, at)
  SELECT m.id, m.version, m.event, 'submitting', m.to_state, 'dispatcher', %(actor)s::text, %(no)s::integer, e.id,
         %(detail)s::jsonb, clock_timestamp()
  FROM moved m, seen e
), late AS (  -- no decision fits any more: somebody must look, whatever the state
  UPDATE operation o SET
    due_at = CASE WHEN o.state IN ('unknown', 'pending')
                    OR %(outcome)s::text IN ('confirmed', 'accepted', 'refused')
                  THEN clock_timestamp() ELSE o.due_at END,
    halted = o.halted OR %(outcome)s::text IN ('confirmed', 'accepted', 'refused')
  WHERE o.id = %(id)s::uuid AND NOT EXISTS (SELECT FROM moved)
    AND NOT EXISTS (SELECT FROM provider_refund f WHERE f.operation_id = o.id AND f.ref = %(ref)s::text)
), /*unsent>*/streak AS (
  UPDATE provider_account a SET not_executed_in_row = a.not_executed_in_row + 1,
    pause_kind = w.kind,
    pause_reason = CASE WHEN w.begins THEN %(because)s::text ELSE a.pause_reason END,
    paused_at = CASE WHEN w.begins THEN clock_timestamp() ELSE a.paused_at END,
    paused_by = CASE WHEN w.begins THEN 'dispatcher' ELSE a.paused_by END,
    probe_at = CASE WHEN w.begins AND w.kind = 'outage'
                    THEN clock_timestamp() + %(probe)s::float8 * interval '1 second' ELSE a.probe_at END
  FROM (
    SELECT name, pause_kind = '' AND next <> '' AS begins,
           CASE WHEN pause_kind = '' THEN next ELSE pause_kind END AS kind
    FROM (SELECT name, pause_kind,
                 CASE WHEN %(credential)s::boolean THEN 'credential'
                      WHEN not_executed_in_row + 1 >= %(in_row_max)s::integer THEN 'outage'
                      ELSE '' END AS next
          FROM provider_account WHERE name = %(account)s::text FOR UPDATE) n
  ) w
  WHERE a.name = w.name AND %(outcome)s::text IN ('not_sent', 'turned_away') AND NOT %(own_fault)s::boolean
    AND (SELECT count(*) FROM here) >= 0
), /*<*/steady AS (
  UPDATE provider_account a SET not_executed_in_row = 0
  WHERE a.name = %(account)s::text AND a.not_executed_in_row > 0
    AND %(outcome)s::text NOT IN ('not_sent', 'turned_away') AND (SELECT count(*) FROM here) >= 0
)
SELECT (SELECT id FROM seen), (SELECT event FROM moved), (SELECT version FROM moved)
"""

_MARKED = re.compile(r"/\*(\w+)>\*/(.*?)/\*<\*/", re.DOTALL)


def _with(*parts: str) -> str:
    return _MARKED.sub(lambda found: found[2] if found[1] in parts else "", ANSWER)


# `plain` says by itself what follows; the rest is weighed against the other attempts.
_PLAIN, _REFUSED, _UNSENT = _with("plain"), _with("weighed", "refused"), _with("weighed", "unsent")
_ANSWERS = {
    Outcome.CONFIRMED: _PLAIN,
    Outcome.ACCEPTED: _PLAIN,
    Outcome.UNANSWERED: _PLAIN,
    Outcome.REFUSED: _REFUSED,
    Outcome.TURNED_AWAY: _UNSENT,
    Outcome.NOT_SENT: _UNSENT,
}

ALONE = """
WITH seen AS (
  INSERT INTO evidence (operation_id, attempt_no, kind, started_at, body, facts)
  VALUES (%(id)s, %(no)s, 'answer', %(started_at)s, %(body)s, %(facts)s) RETURNING id
)
UPDATE operation SET halted = true, due_at = clock_timestamp()
FROM seen WHERE operation.id = %(id)s RETURNING seen.id
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the answer statement did: `event` is None when the decision no longer fitted."""

    evidence_id: int
    event: str | None
    version: int | None


_NEVER_ENDS = 10**9


def keys_explain(contract: ProviderContract, skew_seconds: int) -> dict[str, int | None]:
    """How long after the first record another attempt is the same refund by its key (rule 35):
    what was asked is answered by then, and what is still on its way has landed; seconds.

    `keys_explain` is None where a refusal says nothing of another attempt: the contract does not
    store rejections under the key, or nobody knows how long a copy may fly.
    """
    flight, idle = contract.flight_max.seconds, contract.idle_close.seconds
    if not contract.rejections_stored:
        return {"keys_explain": None, "flight": flight, "idle": idle}
    if contract.keys == "forever":
        return {"keys_explain": _NEVER_ENDS, "flight": 0, "idle": 0}
    window = contract.key_window.seconds if contract.keys == "window" else None
    ends = None if window is None else window - skew_seconds
    return {"keys_explain": ends, "flight": flight, "idle": idle}


def record_answer(
    claim: Claim,
    answer: Answer,
    raw: RawAnswer,
    *,
    account: str,
    contract: ProviderContract,
    limits: Limits,
    started_at: datetime,
    worker: str,
    own_fault: bool = False,
) -> Recorded:
    """Store what the wire said and decide, in one statement and one commit.

    `own_fault`: the attempt ended on our side (late for its send deadline), which says nothing
    about the provider and does not count towards a pause. If the statement raises anything but
    a lost connection, the evidence is stored alone: a proof is never lost to a constraint.
    """
    # Only what may be booked reaches the columns; what else was shown stays in the evidence.
    record = answer.record if answer.outcome in (Outcome.CONFIRMED, Outcome.ACCEPTED) else None
    parameters: dict[str, Any] = {
        "id": claim.operation_id,
        "no": claim.no,
        "fence": claim.fence,
        "outcome": str(answer.outcome),
        "started_at": started_at,
        "body": raw.body,
        "facts": canonical(_facts(answer, raw)).decode(),
        "detail": canonical(
            {"because": answer.because} | ({"code": answer.code} if answer.code else {})
        ).decode(),
        "connected_at": raw.connected_at,
        "first_byte_at": raw.first_byte_at,
        "ref": record.ref if record else None,
        "provider_status": record.provider_status if record else "",
        "provider_created_at": record.created_at if record else None,
        "pending_reason": "needs_customer"
        if record and record.provider_status == "requires_action"
        else "provider_working",
        "backoff": limits.backoff(claim.no),
        "look_after": contract.lookup_schedule[0],
        "account": account,
        "credential": answer.credential_refused,
        "own_fault": own_fault,
        "in_row_max": limits.not_sent_in_row_max,
        "probe": limits.probe_after_seconds,
        "because": answer.because[:300],
        "actor": worker,
    } | keys_explain(contract, limits.skew_seconds)
    try:
        row = prepared.one(_ANSWERS[answer.outcome], parameters)
    except Error:
        if not connection.is_usable():
            raise
        _store_alone(parameters)
        raise
    assert row is not None
    return Recorded(*row)


def _store_alone(parameters: dict[str, Any]) -> None:
    """The proof without its decision, waiting for whoever holds the operation (lock_timeout each).

    A process that was stopped inside a transaction must not cost the only proof there is.
    """
    give_up_at = time.monotonic() + _PROOF_PATIENCE_SECONDS
    while True:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(ALONE, parameters)
        except OperationalError as error:
            waited = isinstance(error.__cause__, pg.LockNotAvailable | pg.DeadlockDetected)
            if not waited or time.monotonic() > give_up_at:
                raise
        else:
            return


def _facts(answer: Answer, raw: RawAnswer) -> dict[str, object]:
    """Of an answer that was read, what says how to read its body is left out: it was JSON, whole."""
    was_read = answer.record is not None
    left_out = _OF_THE_BODY if was_read else ()
    headers = {name: told for name, told in raw.headers.items() if name not in left_out}
    facts = answer.facts() | {"status": raw.status, "headers": headers}
    return facts if was_read else facts | {"failure": raw.failure or raw.unreadable}
