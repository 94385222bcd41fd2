"""What must be true when a schedule has ended, by the book and the database alone."""

from __future__ import annotations

from django.db import connection

from tests.audit_book import FAULTS, audit
from tests.bugs.programs import database_url
from tests.simulation.world import ENDS_BY_ITSELF, World

_REPLAYED = """
SELECT o.id::text, o.state, o.version, e.seq, e.to_state
FROM operation o LEFT JOIN LATERAL (
  SELECT seq, to_state FROM event WHERE operation_id = o.id ORDER BY seq DESC LIMIT 1) e ON true
WHERE (o.version, o.state) IS DISTINCT FROM (e.seq, e.to_state)"""
_OPEN_CASES = """
SELECT o.provider_account, c.reasons::text, c.operation_id::text FROM review_case c
JOIN operation o ON o.id = c.operation_id WHERE c.closed_at IS NULL"""


def faults(world: World) -> list[str]:
    """Everything that is wrong, in words that name the operation; empty when all is well."""
    wrong = [*world.witness.wrong]
    counts = audit(str(world.provider.book_file), database_url())
    found = counts["found"]
    for name in FAULTS:
        if counts[name]:
            wrong.append(f"{name} {counts[name]}: {found.get(name)}")
    with connection.cursor() as cursor:
        cursor.execute(_REPLAYED)
        wrong += [f"events do not lead to the head: {row}" for row in cursor.fetchall()]
        cursor.execute(_OPEN_CASES)
        wrong += [
            f"a case where none is needed: {row}"
            for row in cursor.fetchall()
            if row[0] in ENDS_BY_ITSELF
        ]
    return wrong
