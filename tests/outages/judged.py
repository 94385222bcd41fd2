"""What must hold when an outage is over and everything is at rest; imports nothing of ours."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.audit_book import FAULTS, audit

_REQUESTS = """SELECT marker, count(*) FROM calls WHERE "on" = 'create' AND marker IS NOT NULL
GROUP BY marker"""
_REFUNDS = """SELECT marker FROM refunds WHERE "by" = 'api' AND marker IS NOT NULL"""
_OPERATIONS = """
SELECT o.id::text, o.state, o.attempt_count,
       EXISTS (SELECT FROM event e WHERE e.operation_id = o.id AND e.to_state = 'unknown')
FROM operation o"""
_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"

DEADLOCK_CHARACTERS = 1500


@dataclass
class Verdict:
    """`must`: name of a check -> (what it says, whether it holds). `figures` are for machines."""

    must: dict[str, tuple[str, bool]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)

    def check(self, name: str, says: str, *, holds: bool) -> None:
        self.must[name] = (says, holds)

    @property
    def ok(self) -> bool:
        return all(holds for _, holds in self.must.values())


def judge(
    book: str, database: str, *, proposed: int, troubles: list[str], server_log: str
) -> Verdict:
    """Read both sides; `book` is the sandbox's SQLite file, `database` a URL. Call it at rest.

    `server_log` is what PostgreSQL wrote: it names the statements of each deadlock.
    """
    counts = audit(book, database)
    with closing(sqlite3.connect(f"file:{book}?mode=ro", uri=True)) as db:
        requests = dict(db.execute(_REQUESTS).fetchall())
        refunds = [marker for (marker,) in db.execute(_REFUNDS)]
    with psycopg.connect(database) as connection:
        operations = connection.execute(_OPERATIONS.encode()).fetchall()
        [(deadlocks,)] = connection.execute(_DEADLOCKS.encode()).fetchall()
    found = judged(counts, requests, refunds, operations, proposed)
    if deadlocks:
        at = server_log.find("deadlock detected")
        found.found["deadlocks"] = [server_log[at : at + DEADLOCK_CHARACTERS]]
    found.check("deadlocks", f"{deadlocks} deadlocks", holds=deadlocks == 0)
    found.check("troubles", "; ".join(troubles[:5]) or "no call was refused", holds=not troubles)
    return found


def judged(
    counts: dict[str, Any],
    requests: dict[str, int],
    refunds: list[str],
    operations: list[tuple[Any, ...]],
    proposed: int,
) -> Verdict:
    """Pure. `counts` as the auditor gives them, `requests` at the provider by marker, `refunds` the
    marker of each one in the book, `operations` as (id, state, attempts, whether ever unknown)."""
    verdict = Verdict(found=counts["found"])
    for name in (*FAULTS, "unresolved"):
        verdict.check(name, f"{counts[name]} {name.replace('_', ' ')}", holds=counts[name] == 0)
    attempts = {each[0]: each[2] for each in operations}
    early = [marker for marker, n in requests.items() if n > attempts.get(marker, 0)]
    verdict.check(
        "uncommitted",
        f"{len(early)} refunds with more requests at the provider than attempts in the ledger",
        holds=not early,
    )
    succeeded = sum(each[1] == "succeeded" for each in operations)
    once = sum(n == 1 for n in Counter(refunds).values())
    verdict.check(
        "all_paid_once",
        f"{proposed} proposed, {len(operations)} in the ledger, {succeeded} succeeded, {once} once"
        " in the book",
        holds=proposed == len(operations) == succeeded == once,
    )
    unknown = sum(bool(each[3]) for each in operations)
    verdict.figures |= {
        "refunds": proposed,
        "requests": sum(requests.values()),
        "unknown_meanwhile": unknown,
        **{name: counts[name] for name in (*FAULTS, "unresolved")},
    }
    return verdict
