"""The resend inside the key's life: unknown -> submitting, all or nothing, in one statement.

Same key, same bytes, same reservation. Whoever calls it has decided nothing: every condition is
compared here again, with the database's clock (rules 18, 37, 40 to 42).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from refunds.domain.contract import ProviderContract
from refunds.domain.limits import Limits
from refunds.ledger.claim import STANDS, TRIED, Claim, attempt_of, permitted

# What two people accepted stands in for a bound that the contract lacks, and only there. Its row
# is locked: whoever withdraws it waits for this statement, or this statement sees it withdrawn.
# `seen` is the newest lookup; none may have begun after it, and it may not be old. K runs from the
# first attempt ever recorded. What the provider keeps under the key, an error or a refusal at the
# door, it would only say again. Either the early form without trust in a lookup (rule 40), within a
# quarter of the window; or the form that rests on a complete list that showed nothing (rule 41).
# Where no silent connection is closed, a sender may sleep before its first byte for as long as it
# likes: only what two people accepted speaks for that.
RESUBMIT = """
WITH accepted AS MATERIALIZED (
  SELECT f.id, f.fact, f.seconds FROM accepted_fact f
  WHERE f.account = %(account)s AND f.scope = 'resend' AND f.confirmed_at IS NOT NULL
    AND f.withdrawn_at IS NULL AND f.valid_until > clock_timestamp()
    AND NOT %(forever)s
    AND ((f.fact = 'flight_max' AND %(flight)s::integer IS NULL)
         OR (f.fact = 'lookup_lag' AND %(lag)s::integer IS NULL))
  FOR SHARE
), bounds AS MATERIALIZED (
  SELECT coalesce(%(flight)s, (SELECT seconds FROM accepted WHERE fact = 'flight_max'))
           + %(send)s + coalesce(%(idle)s, 0) + %(skew)s AS landing,
         coalesce(%(lag)s, (SELECT seconds FROM accepted WHERE fact = 'lookup_lag')) AS lag,
         coalesce((SELECT jsonb_agg(id ORDER BY id) FROM accepted), '[]') AS accepted
), ready AS MATERIALIZED (
  SELECT o.id, o.attempt_count + 1 AS no, seen.id AS evidence_id, b.accepted
  FROM operation o
  JOIN payment p ON p.id = o.payment_id
  JOIN orders r ON r.id = o.order_id
  JOIN reservation s ON s.operation_id = o.id AND s.state = 'held'
  LEFT JOIN provider_account a ON a.name = o.provider_account
  CROSS JOIN bounds b
  CROSS JOIN LATERAL (
    SELECT min(t.recorded_at) AS first_at, max(t.recorded_at) AS last_at,
           bool_and(t.stop_proof_at IS NOT NULL) AS stopped,
           bool_and(coalesce(t.outcome NOT IN ('confirmed', 'accepted', 'refused'), true)) AS open,
           bool_and(t.account_identity = %(identity)s::jsonb) AS same
    FROM attempt t WHERE t.operation_id = o.id) t
  JOIN LATERAL (
    SELECT e.id, e.started_at, e.facts ->> 'verdict' AS verdict FROM evidence e
    WHERE e.operation_id = o.id AND e.kind = 'lookup' AND e.lookup_no = o.lookup_started) seen ON true
  WHERE o.id = %(id)s AND o.state = 'unknown'
    AND o.attempt_count = %(attempts)s AND o.attempt_count < %(attempts_max)s
    AND t.open AND t.same
    AND seen.verdict IN ('absent', 'cannot_tell')
    AND seen.started_at > clock_timestamp() - %(fresh)s * interval '1 second'
    AND (SELECT count(*) >= %(looks)s FROM evidence e
         WHERE e.operation_id = o.id AND e.kind = 'lookup' AND e.started_at > t.last_at
           AND e.facts ->> 'verdict' IN ('absent', 'cannot_tell'))
    AND NOT EXISTS (
      SELECT FROM evidence e CROSS JOIN LATERAL (
        SELECT (e.facts ->> 'status')::integer AS status,
               coalesce(e.facts -> 'headers' ->> 'idempotent-replayed' = 'true', false) AS kept) k
      WHERE e.operation_id = o.id AND e.kind = 'answer'
        AND ((k.status >= 500 AND (k.kept OR (e.attempt_no > 1 AND %(errors_kept)s)))
             OR (k.status IN (401, 403, 429) AND k.kept)))
    AND (%(forever)s OR ((%(idle)s::integer IS NOT NULL
                           OR (t.stopped AND %(flight)s::integer IS NULL)) AND (
      (clock_timestamp() <= t.first_at + %(window)s / 4.0 * interval '1 second'
       AND clock_timestamp() + b.landing * interval '1 second'
           <= t.first_at + %(window)s * interval '1 second')
      OR (seen.verdict = 'absent'
          AND clock_timestamp() - seen.started_at + (b.landing + b.lag) * interval '1 second'
              <= %(window)s * interval '1 second'))))
    AND /*stands*/
  FOR UPDATE OF r, p, o
), moved AS (
  UPDATE operation o SET state = 'submitting', version = o.version + 1, attempt_count = y.no,
    entered_at = clock_timestamp(),
    due_at = clock_timestamp() + %(lease)s * interval '1 second'
  FROM ready y WHERE o.id = y.id RETURNING o.id, o.version, y.no, y.evidence_id, y.accepted
), /*tried*/, noted AS (
  INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,
                     attempt_no, evidence_id, detail, at)
  SELECT id, version, 'resubmitted', 'unknown', 'submitting', 'dispatcher', %(actor)s, no,
         evidence_id, jsonb_build_object('accepted', accepted), clock_timestamp() FROM moved
)
SELECT version, no, clock_timestamp() FROM moved
""".replace("/*stands*/", STANDS).replace("/*tried*/", TRIED)


def resubmit(
    operation_id: UUID,
    *,
    worker: str,
    account: str,
    identity: dict[str, Any],
    contract: ProviderContract,
    held_to: ProviderContract,
    attempts: int,
    limits: Limits,
) -> Claim:
    """Permit one more send of an unknown operation under its own key; committed on return.

    `contract` is today's and recorded with the attempt; `held_to` is the stricter of it and those
    of the `attempts` so far, by which the key is judged. Raises ClaimRefused when any condition
    does not hold (nothing happened), CommitUnknown when the database did not confirm.
    """
    attempt = attempt_of(worker, identity, contract, limits)
    return permitted(RESUBMIT, operation_id, attempt | terms(account, held_to, attempts, limits))


def terms(account: str, held_to: ProviderContract, attempts: int, limits: Limits) -> dict[str, Any]:
    """What the statement judges the key by, as its parameters."""
    return {
        "account": account,
        "attempts": attempts,
        "attempts_max": limits.attempts_max,
        "forever": held_to.keys == "forever",
        "window": held_to.key_window.seconds if held_to.keys == "window" else None,
        "errors_kept": held_to.server_errors_replayed,
        "flight": held_to.flight_max.seconds,
        "lag": held_to.lookup_lag.seconds,
        "idle": held_to.idle_close.seconds,
        "skew": limits.skew_seconds,
        "looks": limits.resend_after_lookups,
        "fresh": limits.lookup_fresh_seconds,
    }
