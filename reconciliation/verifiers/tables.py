"""Our tables against each other: what each order's rows must be, whatever happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reconciliation.monitors.reading import rows
from reconciliation.verifiers.finding import Finding

# Each statement gives (order reference, account, sentence) of what contradicts itself among
# %(ids)s, and nothing for what is whole. They share one snapshot.
HELD: Final = """
SELECT r.ref, p.provider_account,
       format('%%s holds %%s; its reservations are %%s', p.ref, p.held_minor, coalesce(s.sum, 0))
FROM payment p JOIN orders r ON r.id = p.order_id
LEFT JOIN LATERAL (
  SELECT sum(s.amount_minor) FROM operation o JOIN reservation s ON s.operation_id = o.id
  WHERE o.order_id = p.order_id AND s.payment_id = p.id AND s.state = 'held') s ON true
WHERE p.order_id = ANY (%(ids)s) AND p.held_minor <> coalesce(s.sum, 0)"""

REFUNDED: Final = """
SELECT r.ref, p.provider_account,
       format('%%s has refunded %%s; its refunds are %%s', p.ref, p.refunded_minor,
              coalesce(f.sum, 0))
FROM payment p JOIN orders r ON r.id = p.order_id
LEFT JOIN LATERAL (
  SELECT sum(f.amount_minor) FROM provider_refund f WHERE f.payment_id = p.id AND f.counts) f
  ON true
WHERE p.order_id = ANY (%(ids)s) AND p.refunded_minor <> coalesce(f.sum, 0)"""

RESERVATIONS: Final = """
SELECT r.ref, o.provider_account,
       format('%%s is %%s and its reservation is %%s', o.business_key, o.state,
              coalesce(s.state, 'not there'))
FROM operation o JOIN orders r ON r.id = o.order_id
LEFT JOIN reservation s ON s.operation_id = o.id
WHERE o.order_id = ANY (%(ids)s) AND (
  (o.state IN ('submitting', 'pending', 'unknown')
   AND (coalesce(s.state, '') <> 'held' OR s.amount_minor <> o.amount_minor
        OR s.payment_id <> o.payment_id))
  OR (s.state = 'held' AND o.state NOT IN ('submitting', 'pending', 'unknown', 'authorized')))"""

ENDS: Final = """
SELECT r.ref, o.provider_account,
       format('%%s is %%s, and %%s', o.business_key, o.state,
              CASE WHEN o.state = 'succeeded' THEN 'no refund of it counts'
                   ELSE 'a refund of it counts' END)
FROM operation o JOIN orders r ON r.id = o.order_id
WHERE o.order_id = ANY (%(ids)s)
  AND NOT EXISTS (SELECT FROM review_case c WHERE c.operation_id = o.id AND c.closed_at IS NULL)
  AND CASE WHEN o.state = 'succeeded' THEN
        NOT EXISTS (SELECT FROM provider_refund f WHERE f.operation_id = o.id AND f.counts)
      WHEN o.state IN ('proposed', 'awaiting_approval', 'authorized', 'denied', 'rejected',
                       'withdrawn', 'expired', 'failed') THEN
        EXISTS (SELECT FROM provider_refund f WHERE f.operation_id = o.id AND f.counts)
      ELSE false END"""

EVENTS: Final = """
SELECT r.ref, o.provider_account,
       format('%%s stands at %%s %%s; its last event is %%s %%s of %%s', o.business_key, o.version,
              o.state, e.last_seq, e.last_state, e.count)
FROM operation o JOIN orders r ON r.id = o.order_id
CROSS JOIN LATERAL (
  SELECT count(*), max(seq) AS last_seq, (array_agg(to_state ORDER BY seq DESC))[1] AS last_state,
         bool_and(from_state = before AND seq = place) AS chained
  FROM (SELECT seq, from_state, to_state, lag(to_state, 1, 'none') OVER w AS before,
               row_number() OVER w AS place
        FROM event WHERE operation_id = o.id WINDOW w AS (ORDER BY seq)) e) e
WHERE o.order_id = ANY (%(ids)s)
  AND (e.last_seq IS DISTINCT FROM o.version OR e.last_state IS DISTINCT FROM o.state
       OR e.count <> o.version OR NOT coalesce(e.chained, false))"""

ATTEMPTS: Final = """
SELECT r.ref, o.provider_account,
       format('%%s counts %%s attempts; there are %%s', o.business_key, o.attempt_count, t.count)
FROM operation o JOIN orders r ON r.id = o.order_id
CROSS JOIN LATERAL (
  SELECT count(*), coalesce(max(no), 0) AS last FROM attempt WHERE operation_id = o.id) t
WHERE o.order_id = ANY (%(ids)s) AND (t.count <> o.attempt_count OR t.last <> o.attempt_count)"""

VERSIONS: Final = """
SELECT DISTINCT r.ref, p.provider_account,
       format('the order is at version %%s with %%s moves', r.version, m.count)
FROM orders r JOIN payment p ON p.order_id = r.id
CROSS JOIN LATERAL (
  SELECT count(*), max(version) AS last FROM order_move WHERE order_id = r.id) m
WHERE r.id = ANY (%(ids)s) AND (m.count <> r.version OR m.last <> r.version)"""

CHECKS: Final = (HELD, REFUNDED, RESERVATIONS, ENDS, EVENTS, ATTEMPTS, VERSIONS)

# Everything that changes an order's money or its operations leaves one of these.
_CHANGED = """
SELECT o.order_id FROM event e JOIN operation o ON o.id = e.operation_id
WHERE e.at >= %(since)s AND e.at < %(until)s
UNION SELECT order_id FROM order_move WHERE at >= %(since)s AND at < %(until)s
UNION SELECT p.order_id FROM provider_refund f JOIN payment p ON p.id = f.payment_id
WHERE f.first_seen_at >= %(since)s AND f.first_seen_at < %(until)s"""
_NEXT = "SELECT id FROM orders WHERE id > %(after)s ORDER BY id LIMIT %(batch)s"
_OF = "SELECT id FROM orders WHERE ref = ANY (%(refs)s)"
_REFS = "SELECT ref FROM orders WHERE id = ANY (%(ids)s)"


def subject_of(order_ref: str) -> str:
    """How an alarm names an order."""
    return f"order {order_ref}"


def check(ids: Sequence[Any]) -> list[Finding]:
    """Every contradiction among the orders; inside one snapshot."""
    return [
        Finding(subject_of(order), account, says)
        for statement in CHECKS
        for order, account, says in rows(statement, ids=list(ids))
    ]


def changed(since: Any, until: Any) -> list[Any]:
    """Ids of orders that changed in [since, until)."""
    return [row[0] for row in rows(_CHANGED, since=since, until=until)]


def after(cursor: str, batch: int) -> list[Any]:
    """The next ids after the cursor, in their order."""
    return [row[0] for row in rows(_NEXT, after=int(cursor or 0), batch=batch)]


def under_alarm(subjects: Sequence[str]) -> list[Any]:
    """Ids of the orders that alarms name."""
    refs = [subject.removeprefix("order ") for subject in subjects]
    return [row[0] for row in rows(_OF, refs=refs)]


def subjects(ids: Sequence[Any]) -> frozenset[str]:
    """The subjects of what was checked."""
    return frozenset(subject_of(ref) for (ref,) in rows(_REFS, ids=list(ids)))
