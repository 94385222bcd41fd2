"""Orders and finished operations in numbers, made by the server itself.

The rows are those that the product's own verbs would have left; what a history says about itself
is checked in the end. Only triggers and foreign keys are set aside while they are written.
"""

from __future__ import annotations

from typing import Any

from reconciliation.verifiers import lookups, tables
from tests.bench import dialect

CHUNK = 20_000
# A queue is what has not ended: one in so many waits for an approval, and one is unknown. Of a small
# history more, so that both lists fill a page: pages are compared that show as much.
USUALLY_APART, OPEN_MIN = 333, 100
CAPTURED_MINOR = 12_900

_ORDERS = """
WITH wanted AS (SELECT g FROM generate_series(%(first)s::int, %(last)s::int) g), o AS (
  INSERT INTO orders (ref, version, currency, customer_ref, frozen, return_state,
                      fulfilment_state, lines, facts, links, facts_as_of, created_at)
  SELECT %(prefix)s || '-' || g, %(version)s, 'USD', 'cus_' || %(prefix)s || g, false, '', '',
         '[]', '[]', '{}', now(), now() FROM wanted RETURNING id, ref
), m AS (
  INSERT INTO order_move (order_id, version, cause, actor, detail, at)
  SELECT id, 1, 'first_seen', 'shop', '{}', now() FROM o
)
INSERT INTO payment (order_id, provider_account, ref, currency, state, halted, captured_minor,
                     refunded_minor, held_minor, captured_at)
SELECT id, %(account)s, 'pi_' || ref, 'USD', 'captured', false, %(captured)s, 0, 0,
       now() - interval '9 days' FROM o
"""


def orders(cursor: Any, prefix: str, count: int, *, first: int = 1, version: int = 1) -> None:
    """`count` orders `<prefix>-<n>` with one captured payment each."""
    cursor.execute(
        _ORDERS,
        {
            "prefix": prefix,
            "first": first,
            "last": first + count - 1,
            "version": version,
            "account": dialect.NAME,
            "captured": CAPTURED_MINOR,
        },
    )


def finished(cursor: Any, count: int) -> None:
    """`count` operations on orders `h-<n>` of their own, the oldest first, and six events of each
    that ended well: its answer was lost, and a lookup found it. Some are still open (see above):
    a history is of 1,000 operations or more.

    Raises AssertionError when what was written contradicts itself.
    """
    apart = min(USUALLY_APART, count // OPEN_MIN)
    for first in range(1, count + 1, CHUNK):
        last = min(first + CHUNK - 1, count)
        orders(cursor, "h", last - first + 1, first=first)
        cursor.execute("SET session_replication_role = replica")
        try:
            cursor.execute(_DRAWN, {"first": first, "last": last, "count": count, "apart": apart})
            for statement in _HISTORY:
                cursor.execute(statement)
            cursor.execute("DROP TABLE drawn")
        finally:
            cursor.execute("SET session_replication_role = DEFAULT")
    # The last chunk, by the product's own verifiers.
    cursor.execute("SELECT id FROM orders WHERE ref LIKE 'h-%' ORDER BY id DESC LIMIT 1000")
    ids = [row[0] for row in cursor.fetchall()]
    for check in tables.CHECKS:
        cursor.execute(check, {"ids": ids})
        wrong = cursor.fetchall()
        assert not wrong, f"what was filled in contradicts itself: {wrong[0]}"
    cursor.execute("SELECT id FROM operation WHERE order_id = ANY(%s)", [ids])
    against = lookups.check([row[0] for row in cursor.fetchall()])
    assert not against, f"what was filled in contradicts its own findings: {against[0]}"
    for table in _FILLED:
        # Vacuumed, too: the server would do it by itself, and in the minutes that are measured.
        cursor.execute(f"VACUUM (ANALYZE) {table}")


_FILLED = (
    "orders",
    "order_move",
    "payment",
    "operation",
    "event",
    "attempt",
    "evidence",
    "reservation",
    "provider_refund",
    "approval",
    "proposal",
    "policy_check",
)
# One operation a row, with everything that its rows have in common. Ids are ordered by time, as
# version 7 makes them; nine seconds lie between two operations.
_DRAWN = """
CREATE TEMPORARY TABLE drawn AS
SELECT w.*, r.id AS order_id, p.id AS payment_id, p.ref AS payment_ref,
  (lpad(to_hex((extract(epoch FROM w.at) * 1000)::bigint), 12, '0') || '7'
    || substr(w.hash, 1, 3) || '8' || substr(w.hash, 4, 15))::uuid AS id,
  (substr(w.hash, 1, 12) || '4' || substr(w.hash, 14, 3) || '8' || substr(w.hash, 18, 15))::uuid
    AS provider_key,
  a.id AS agent_id, a.owner_id, l.id AS lead_id
FROM (
  SELECT g, md5('bench ' || g) AS hash, 100 + g %% 9000 AS amount,
    now() - ((%(count)s::int - g) * 9 + 60) * interval '1 second' AS at,
    CASE WHEN g %% %(apart)s::int = 1 THEN 'awaiting_approval'
         WHEN g %% %(apart)s::int = 2 THEN 'unknown'
         WHEN g %% 1000 BETWEEN 5 AND 7 THEN 'rejected' ELSE 'succeeded' END AS state
  FROM generate_series(%(first)s::int, %(last)s::int) g
) w
JOIN orders r ON r.ref = 'h-' || w.g
JOIN payment p ON p.order_id = r.id
JOIN agent a ON a.name = 'bench-' || w.g %% 8
JOIN person l ON l.username = 'bench-lead-' || w.g %% 8
"""
_SENT = "state IN ('unknown', 'succeeded')"
_HISTORY = (
    f"""
INSERT INTO operation (id, kind, business_key, provider_account, amount_minor, currency,
  reason_code, reason_text, request_ref, requested_by_kind, requested_by_ref, ticket_ref, run_ref,
  step_ref, claims, read_links, provider_key, body, fingerprint, policy_version, tier, quorum,
  possible_repeat, state, version, entered_at, round, send_version, attempt_count, lookup_started,
  lookup_applied, failure_count, halted, blocks_equivalent, stale_cause, pending_reason,
  expires_at, due_at, unknown_since, settled_at, created_at, agent_id, agent_owner_id, order_id,
  payment_id)
SELECT id, 'refund', 'refund:h-' || g || ':op-' || 20000000 + g, '{dialect.NAME}', amount, 'USD',
  'damaged_item', 'customer reported item ' || g % 97 || ' damaged in transit',
  'op-' || 20000000 + g, 'customer', 'cus_h' || g, '', '', '', '{{}}', '{{}}', provider_key,
  convert_to('{{"amount":' || amount || ',"op":"' || id || '"}}', 'UTF8'),
  sha256(convert_to(hash, 'UTF8')), repeat('0', 64), 1, 1, false, state,
  CASE state WHEN 'awaiting_approval' THEN 2 WHEN 'rejected' THEN 3 WHEN 'unknown' THEN 5 ELSE 6 END,
  at + interval '5 s', 1, CASE WHEN {_SENT} THEN 2 END, ({_SENT})::int,
  (state = 'succeeded')::int, (state = 'succeeded')::int, 0, false,
  state IN ('unknown', 'awaiting_approval'), '', '', now() + interval '3 days',
  CASE WHEN state IN ('unknown', 'awaiting_approval') THEN now() + interval '3 days' END,
  CASE WHEN {_SENT} THEN at + interval '4 s' END,
  CASE WHEN state IN ('succeeded', 'rejected') THEN at + interval '5 s' END,
  at, agent_id, owner_id, order_id, payment_id
FROM drawn ORDER BY g""",
    f"""
INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor, attempt_no,
                   detail, at)
SELECT d.id, s.seq, s.event, s.was, s.becomes, s.kind,
       replace(s.actor, '#', (d.g % 8)::text), s.attempt, s.detail::jsonb,
       d.at + s.seq * interval '0.8 s'
FROM drawn d JOIN (VALUES
  (1, 'proposed', 'none', 'proposed', 'caller', 'agent:bench-#', NULL, '{{}}', 0),
  (2, 'policy_held', 'proposed', 'awaiting_approval', 'policy', 'policy', NULL,
   '{{"failed":[],"tier":1}}', 0),
  (3, 'rejected', 'awaiting_approval', 'rejected', 'approver', 'person:bench-lead-#', NULL,
   '{{"code":"other","reason":"not what was agreed"}}', 1),
  (3, 'approved', 'awaiting_approval', 'authorized', 'approvers', 'person:bench-lead-#', NULL,
   '{{"order_version":1,"round":1}}', 2),
  (4, 'submission_started', 'authorized', 'submitting', 'dispatcher', 'dispatcher:host:1', 1,
   '{{}}', 2),
  (5, 'unanswered', 'submitting', 'unknown', 'dispatcher', 'dispatcher:host:1', 1,
   '{{"because":"No answer: the connection broke.","code":null}}', 2),
  (6, 'found_succeeded', 'unknown', 'succeeded', 'reconciler', 'reconciler', NULL,
   '{{"because":"One refund carries our marker.","lookup":1}}', 3)
) AS s (seq, event, was, becomes, kind, actor, attempt, detail, needs)
ON s.needs = 0 OR (s.needs = 1 AND d.state = 'rejected')
  OR (s.needs = 2 AND d.{_SENT}) OR (s.needs = 3 AND d.state = 'succeeded')
ORDER BY d.g, s.seq""",
    f"""
INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,
  connected_at, first_byte_at, closed_at, outcome, stop_proof_at, account_identity, contract_hash)
SELECT id, 1, 4, at + interval '3 s', at + interval '5 s', at + interval '63 s',
  at + interval '3.1 s', at + interval '3.1 s', at + interval '4 s', 'unanswered',
  at + interval '4 s', '{{"account":"{dialect.NAME}"}}', sha256('contract') FROM drawn
WHERE {_SENT} ORDER BY g""",
    f"""
INSERT INTO evidence (operation_id, attempt_no, lookup_no, kind, started_at, stored_at, body, facts)
SELECT d.id, s.attempt, s.lookup, s.kind, d.at + s.after * interval '1 s',
  d.at + s.after * interval '1 s', convert_to(s.body, 'UTF8'),
  s.facts::jsonb || CASE s.kind WHEN 'lookup' THEN jsonb_build_object('candidates',
    jsonb_build_array(jsonb_build_object('ref', 're_' || d.g, 'payment_ref', d.payment_ref,
      'amount_minor', d.amount, 'currency', 'USD', 'provider_status', 'succeeded', 'marker', d.id,
      'created_at', d.at + interval '4 s', 'ours', true, 'fields', '{{"marker":"match",
        "payment":"match","amount":"match","currency":"match","created":"match"}}'::jsonb)))
  ELSE '{{}}' END
FROM drawn d JOIN (VALUES
  (1, NULL::int, 'answer', 4, '', '{{"outcome":"unanswered","because":"No answer.","code":null,'
   '"ref":null,"provider_status":null,"amount_minor":null,"currency":null,"payment_ref":null,'
   '"marker":null,"status":null,"headers":{{}},"failure":"the connection broke"}}'),
  (NULL, 1, 'lookup', 5, '{{"items":[]}}', '{{"verdict":"match","because":"One refund carries'
   ' our marker.","method":"list of the payment''s refunds","complete":true,"pages":1,'
   '"account":{{"account":"{dialect.NAME}"}}}}')
) AS s (attempt, lookup, kind, after, body, facts)
ON (d.{_SENT} AND s.kind = 'answer') OR d.state = 'succeeded'
ORDER BY d.g, s.after""",
    f"""
INSERT INTO reservation (operation_id, payment_id, amount_minor, state)
SELECT id, payment_id, amount, CASE state WHEN 'unknown' THEN 'held' ELSE 'booked' END FROM drawn
WHERE {_SENT} ORDER BY g""",
    f"""
INSERT INTO provider_refund (provider_account, ref, payment_id, operation_id, amount_minor,
  provider_status, counts, provider_created_at, first_seen_at)
SELECT '{dialect.NAME}', 're_' || g, payment_id, id, amount, 'succeeded', true,
  at + interval '3.5 s', at + interval '5 s' FROM drawn WHERE state = 'succeeded' ORDER BY g""",
    f"""
UPDATE payment p SET held_minor = CASE d.state WHEN 'unknown' THEN amount ELSE 0 END,
  refunded_minor = CASE d.state WHEN 'succeeded' THEN amount ELSE 0 END
FROM drawn d WHERE p.id = d.payment_id AND d.{_SENT}""",
    f"""
INSERT INTO order_move (order_id, version, cause, operation_id, amount_minor, actor, detail, at)
SELECT order_id, 2, 'reserved', id, amount, 'dispatcher:host:1', '{{}}', at + interval '3 s'
FROM drawn WHERE {_SENT} ORDER BY g""",
    f"UPDATE orders r SET version = 2 FROM drawn d WHERE r.id = d.order_id AND d.{_SENT}",
    f"""
INSERT INTO approval (operation_id, round, approver_id, as_role, fingerprint, order_version, shown,
  shown_operations, shown_amounts_minor, asked_by_approver, separate_refund_confirmed,
  policy_version, expires_at, at)
SELECT id, 1, lead_id, 'lead', sha256(convert_to(hash, 'UTF8')), 1, '{{}}', '{{}}', '{{}}', false,
  false, repeat('0', 64), at + interval '1 day', at + interval '2.4 s' FROM drawn
WHERE {_SENT} ORDER BY g""",
    """
INSERT INTO proposal (operation_id, agent_id, session_id, tool_call_id, arguments_digest, created, at)
SELECT id, agent_id, 'bench', 'op-' || 20000000 + g, sha256(convert_to(hash, 'UTF8')), true, at
FROM drawn ORDER BY g""",
    """
INSERT INTO policy_check (operation_id, position, name, passed, says, inputs)
SELECT d.id, s.position, s.name, true, 'holds for this refund of ' || d.amount, '{"amount": 1}'
FROM drawn d JOIN (VALUES (1, 'caller_allowed'), (2, 'order_known'), (3, 'payment_refundable'),
  (4, 'currency_matches'), (5, 'within_balance'), (6, 'no_live_equivalent'),
  (7, 'repeat_confirmed'), (8, 'refund_age'), (9, 'agent_limits'), (10, 'velocity'), (11, 'tier'))
  AS s (position, name) ON d.g % 10 = 0 OR s.position <= 2
ORDER BY d.g, s.position""",
)
