"""What a replay may not show, by the provider's book and the tables alone; no code of the product's."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection

# States that say that no money of this operation moved, in the words of the table of states.
SAYS_NO = frozenset(
    {"awaiting_approval", "authorized", "failed", "rejected", "withdrawn", "expired", "denied"}
)
UNDER_WAY = frozenset({"submitting", "pending", "unknown"})
_OPERATION = """
SELECT o.state, o.version, o.attempt_count, o.amount_minor, o.halted,
  p.held_minor, p.refunded_minor,
  (SELECT coalesce(sum(s.amount_minor), 0)::bigint FROM reservation s
   WHERE s.payment_id = p.id AND s.state = 'held') AS held_sum,
  (SELECT count(*) FROM reservation s
   WHERE s.operation_id = o.id AND s.state = 'held') AS holds,
  (SELECT coalesce(sum(f.amount_minor), 0)::bigint FROM provider_refund f
   WHERE f.payment_id = p.id AND f.counts) AS refunded_sum,
  (SELECT e.seq || ' ' || e.to_state FROM event e WHERE e.operation_id = o.id
   ORDER BY e.seq DESC LIMIT 1) AS newest,
  (SELECT count(*) FROM attempt t WHERE t.operation_id = o.id AND t.outcome = 'refused') AS refused,
  (SELECT coalesce(array_agg(DISTINCT reason), '{}') FROM review_case c,
     jsonb_array_elements_text(to_jsonb(c.reasons)) AS reason
   WHERE c.operation_id = o.id AND c.closed_at IS NULL) AS reasons
FROM operation o JOIN payment p ON p.id = o.payment_id WHERE o.id = %s"""


@dataclass(frozen=True)
class Seen:
    """Both sides at one moment: a row of the tables, and how often the book paid it."""

    row: dict[str, Any]
    paid: int
    book_minor: int

    @property
    def state(self) -> str:
        found: str = self.row["state"]
        return found


@dataclass
class Eyes:
    """Look after each step; what was wrong stands in `wrong`, each once."""

    book: Path
    operation_id: str
    refunds_max: int = 1
    # Two people answer for a false end (see the trace); it must be shown to be one afterwards.
    may_deny: bool = False
    wrong: list[str] = field(default_factory=list)
    # Why a further send must not begin now, in words; set by whoever moves the scene.
    forbidden: str = ""
    _attempts: int = 0
    _refused: int = 0

    def __post_init__(self) -> None:
        self._book = sqlite3.connect(f"file:{self.book}?mode=ro", uri=True)

    def close(self) -> None:
        self._book.close()

    def look(self) -> Seen:
        seen = self._seen()
        row = seen.row
        if seen.paid > self.refunds_max:
            self._say(f"paid {seen.paid} times")
        if seen.paid and row["state"] in SAYS_NO and not self.may_deny:
            self._say(f"the ledger says {row['state']}, and the money moved")
        if not seen.paid and row["state"] == "succeeded":
            self._say("the ledger says succeeded, and no refund of ours was made")
        if row["attempt_count"] > self._attempts and self.forbidden:
            self._say(f"a send began although {self.forbidden}")
        if row["attempt_count"] > self._attempts and self._refused:
            self._say("a send began although the provider had refused it for good")
        self._attempts, self._refused = row["attempt_count"], row["refused"]
        self._sums(row)
        return seen

    def _sums(self, row: dict[str, Any]) -> None:
        if row["held_minor"] != row["held_sum"]:
            self._say(f"held {row['held_minor']}, reservations {row['held_sum']}")
        if row["refunded_minor"] != row["refunded_sum"]:
            self._say(f"refunded {row['refunded_minor']}, booked {row['refunded_sum']}")
        if row["state"] in UNDER_WAY and not row["holds"]:
            self._say(f"nothing is held in {row['state']}")
        if row["holds"] and row["state"] not in (*UNDER_WAY, "authorized"):
            self._say(f"money is held in {row['state']}")
        if row["newest"] != f"{row['version']} {row['state']}":
            self._say(f"the events lead to {row['newest']}")

    def _seen(self) -> Seen:
        with connection.cursor() as cursor:
            cursor.execute(_OPERATION, [self.operation_id])
            names = [each.name for each in cursor.description]
            row = dict(zip(names, cursor.fetchone(), strict=True))
        [(paid,)] = self._book.execute(
            "SELECT count(*) FROM refunds WHERE marker = ?", [self.operation_id]
        )
        [(total,)] = self._book.execute("SELECT coalesce(sum(amount_minor), 0) FROM refunds")
        return Seen(row, paid, total)

    def _say(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)
