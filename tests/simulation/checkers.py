"""What must be true of a schedule, by the book and the database alone: at every step, and at rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django.db import connection

from tests.audit_book import ENDED, FAULTS, NO_MONEY_ENDS, VOID_STATUSES, audit
from tests.bugs.programs import database_url
from tests.simulation import NEEDLESS_CASE

if TYPE_CHECKING:
    from tests.simulation.provider import SandboxHere
    from tests.simulation.witnesses import Witness
    from tests.simulation.world import World

# They say that nothing was executed.
_BEFORE_ANY = frozenset({"proposed", "awaiting_approval", "authorized"})
# Each row is a state to compare with the book, or a finding; in one statement, at one instant.
_NOW = """
SELECT 'state' AS kind, id::text AS what, state AS words FROM operation
UNION ALL
SELECT 'the events do not lead to the head', o.id::text, format('%%s at %%s', o.state, o.version)
FROM operation o WHERE NOT EXISTS (
  SELECT FROM event e WHERE e.operation_id = o.id AND (e.seq, e.to_state) = (o.version, o.state)
  AND NOT EXISTS (SELECT FROM event l WHERE l.operation_id = o.id AND l.seq > e.seq))
UNION ALL
SELECT 'its money is not held', o.id::text, o.state FROM operation o
WHERE o.state IN ('submitting', 'pending', 'unknown') AND NOT EXISTS (
  SELECT FROM reservation s WHERE s.operation_id = o.id AND s.state = 'held')
UNION ALL
SELECT 'the sums are wrong', p.ref, format('%%s held, %%s refunded', p.held_minor, p.refunded_minor)
FROM payment p
WHERE p.held_minor <> (SELECT coalesce(sum(s.amount_minor), 0) FROM reservation s
                       WHERE s.payment_id = p.id AND s.state = 'held')
   OR p.refunded_minor <> (SELECT coalesce(sum(f.amount_minor), 0) FROM provider_refund f
                           WHERE f.payment_id = p.id AND f.counts)
""".replace("%%", "%")
_OPEN_CASES = """
SELECT o.provider_account, c.reasons::text, c.operation_id::text FROM review_case c
JOIN operation o ON o.id = c.operation_id
WHERE c.closed_at IS NULL AND NOT c.reasons <@ ARRAY['remedy', 'external']::varchar[]
  -- What the provider told of a refund that had ended, and for a quarter of an hour did not show.
  AND NOT (o.settled_at IS NOT NULL AND EXISTS (SELECT FROM notice n WHERE n.case_id = c.id))"""
# What a lookup or a notice showed must have been so when it was asked, or came.
_SHOWN_PAID = """
SELECT e.operation_id::text, e.event, v.kind, extract(epoch FROM v.started_at)::float8 FROM event e
JOIN evidence v ON v.id = e.evidence_id
WHERE (e.to_state = 'succeeded' OR e.event = 'contradicted')
  AND v.kind IN ('lookup', 'notice') AND v.facts ->> 'verdict' = 'match'"""
# What an older lookup decided once a newer one had, and when each of them began.
_OVERTAKEN = """
SELECT e.operation_id::text, e.event, extract(epoch FROM v.started_at)::float8,
       extract(epoch FROM n.started_at)::float8
FROM event e JOIN evidence v ON v.id = e.evidence_id AND v.kind = 'lookup'
JOIN event b ON b.operation_id = e.operation_id AND b.seq < e.seq AND b.actor_kind = 'reconciler'
JOIN evidence n ON n.id = b.evidence_id AND n.kind = 'lookup' AND n.lookup_no > v.lookup_no
WHERE e.actor_kind = 'reconciler'"""
# No list of the sandbox lags for longer.
_LAG_SECONDS = 5
_SIGNED = """
SELECT r.id, r.choice FROM case_ruling r JOIN case_ruling_end e ON e.ruling_id = r.id
WHERE e.outcome = 'in_force' AND r.people > 1 AND e.by_id IS NOT DISTINCT FROM r.first_by_id"""


def at_once(provider: SandboxHere, witness: Witness) -> list[str]:
    """What is wrong now, whatever may become of it: money that moved twice or against what our
    record says, sums that do not add up, heads that their events do not lead to."""
    refunds = provider.ours()
    made = Counter(marker for marker, _ in refunds)
    kept = {marker for marker, status in refunds if status not in VOID_STATUSES}
    wrong = [*witness.wrong]
    wrong += [f"duplicates: {marker} has {n} refunds" for marker, n in made.items() if n > 1]
    with connection.cursor() as cursor:
        cursor.execute(_NOW)
        rows = cursor.fetchall()
    for kind, what, words in rows:
        if kind != "state":
            wrong.append(f"{kind}: {what}, {words}")
        elif words in NO_MONEY_ENDS and what in kept:
            wrong.append(f"false end: {what} is {words}, and the book has its refund")
        elif words in _BEFORE_ANY and what in kept:
            wrong.append(f"false deferral: {what} is {words}, and the book has its refund")
        elif words in ENDED and words not in NO_MONEY_ENDS and what not in made:
            wrong.append(f"false end: {what} is {words}, and the book has nothing")
    return wrong + _on_old_news(provider)


def _on_old_news(provider: SandboxHere) -> list[str]:
    """What became a success, or was called paid after all, by something that had not been true any
    more, and what a lookup decided that a newer one had overtaken, by how it stood before that."""
    since = dict(provider.sent_back())
    if not since:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN_PAID)
        shown = cursor.fetchall()
        cursor.execute(_OVERTAKEN)
        overtaken = cursor.fetchall()
    return [
        f"false news: {marker}, {event} by a {kind} when its money had long come back"
        for marker, event, kind, asked_at in shown
        if marker in since and asked_at > since[marker] + _LAG_SECONDS
    ] + [
        f"old news: {marker}, {event} by a lookup from before its money came back, after a newer one"
        for marker, event, older, newer in overtaken
        if marker in since and older < since[marker] < newer
    ]


def faults(world: World) -> list[str]:
    """Everything that is wrong at rest, in words that name the operation; empty when all is well."""
    wrong = at_once(world.provider, world.witness)
    counts = audit(str(world.provider.book_file), database_url())
    found = counts["found"]
    for name in FAULTS:
        if counts[name]:
            wrong.append(f"{name} {counts[name]}: {found.get(name)}")
    with connection.cursor() as cursor:
        cursor.execute(_SIGNED)
        wrong += [f"two signatures of one person: {row}" for row in cursor.fetchall()]
        cursor.execute(_OPEN_CASES)
        wrong += [
            f"{NEEDLESS_CASE}: {row}" for row in cursor.fetchall() if world.ends_by_itself(row[0])
        ]
    return wrong
