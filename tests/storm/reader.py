"""Questions to the database from outside, patient while it is away."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg.rows import dict_row

AGAIN_SECONDS = 0.2
AWAY_SECONDS_MAX = 120

# Asked for and not ended, and not with a person either.
IN_FLIGHT = """
SELECT count(*) AS n FROM operation o WHERE o.settled_at IS NULL AND NOT EXISTS
 (SELECT FROM review_case c WHERE c.operation_id = o.id AND c.closed_at IS NULL)"""
# As an approver reads it: the page shows what was given back of the payment elsewhere.
WAITING = """
SELECT o.id::text AS id, EXISTS
 (SELECT FROM provider_refund r WHERE r.payment_id = o.payment_id AND r.operation_id IS NULL
  AND r.counts AND r.amount_minor = o.amount_minor) AS given_back
FROM operation o WHERE o.state = 'awaiting_approval' ORDER BY o.id"""
# A refund that no row explains; and one whose row had said that nothing was sent yet. Who had been
# told that it failed is not among them: no lost row explains that. And one that was found never to
# have been made only after a quarantine: it took longer than patience lasts, and is paid otherwise.
TO_EXPLAIN = """
SELECT c.id, c.reasons = '{remedy}' AS owed FROM review_case c LEFT JOIN operation o ON o.id = c.operation_id
WHERE c.closed_at IS NULL AND c.payment_id IS NOT NULL AND c.operation_id IS NULL
   OR c.closed_at IS NULL AND o.state = 'succeeded' AND c.reasons = '{contradiction}'
  AND EXISTS (SELECT FROM event e WHERE e.operation_id = o.id AND e.event = 'contradicted'
              AND e.from_state IN ('awaiting_approval', 'authorized'))
   OR c.closed_at IS NULL AND o.state = 'failed' AND c.reasons = '{remedy}'
  AND EXISTS (SELECT FROM quarantine q WHERE q.lifted_at > o.created_at)
ORDER BY c.id"""
KNOWN = "SELECT id::text AS id FROM operation"
# Who is between the claim's commit and the answer's, youngest first.
SENDING = """
SELECT o.id::text AS id, o.version, o.provider_account AS account,
       split_part(e.actor, ':', 3)::int AS pid
FROM operation o JOIN event e ON e.operation_id = o.id AND e.seq = o.version
WHERE o.state = 'submitting' AND e.actor LIKE 'dispatcher:%%' ORDER BY e.at DESC"""


class Reader:
    """Reads only; every question is a statement of its own. One for each thread."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The answer, as soon as there is one. Raises TimeoutError when the database stays away."""
        give_up_at = time.monotonic() + AWAY_SECONDS_MAX
        while True:
            try:
                return self._entered().execute(query.encode(), values).fetchall()
            except psycopg.OperationalError as away:
                self.close()
                if time.monotonic() > give_up_at:
                    raise TimeoutError(f"the database stayed away: {away}") from away
                time.sleep(AGAIN_SECONDS)

    def count(self, query: str, *values: object) -> int:
        """The one number of an answer with a column `n`."""
        return int(self.rows(query, *values)[0]["n"])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _entered(self) -> psycopg.Connection[dict[str, Any]]:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._database, autocommit=True, row_factory=dict_row, connect_timeout=5
            )
        return self._connection
