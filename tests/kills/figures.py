"""What became of the refunds whose sender was killed: counted in the provider's book and the database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

# How often the beat asks for leases that are over, and what a busy machine takes to do so.
SWEEP_SECONDS, BUSY_SECONDS = 5.0, 3.0

_REFUNDS = """SELECT marker FROM refunds WHERE account = ? AND "by" = 'api'"""
_REQUESTS = """SELECT marker FROM calls WHERE account = ? AND "on" = 'create'"""
_OPERATIONS = """
SELECT o.id::text AS id,
  extract(epoch FROM u.at - a.lease_until)::float8 AS unknown_after_lease,
  extract(epoch FROM f.at - u.at)::float8 AS found_after_unknown,
  o.state = 'succeeded' AND EXISTS
    (SELECT FROM provider_refund r WHERE r.operation_id = o.id AND r.counts) AS recorded
FROM operation o
LEFT JOIN attempt a ON a.operation_id = o.id AND a.no = 1
LEFT JOIN LATERAL (SELECT min(e.at) AS at FROM event e
  WHERE e.operation_id = o.id AND e.to_state = 'unknown') u ON true
LEFT JOIN LATERAL (SELECT min(e.at) AS at FROM event e JOIN evidence v ON v.id = e.evidence_id
  WHERE e.operation_id = o.id AND e.event = 'found_succeeded' AND v.kind = 'lookup') f ON true
WHERE o.provider_account = %s"""


@dataclass(frozen=True)
class Row:
    """One operation. Seconds: from its first attempt's lease to *unknown* (negative: within it),
    and from there to the lookup that found its refund; None where that did not happen."""

    id: str
    unknown_after_lease: float | None
    found_after_unknown: float | None
    recorded: bool


@dataclass(frozen=True)
class Figures:
    """Of one account. Everything but `operations`, `doubles`, `never_sent` and `recorded` counts
    the killed ones alone: their sender was dead when the provider had paid and nobody had heard.

    `doubles`: with more than one refund in the book; `never_sent`: with none. `further_sends`:
    requests beyond each one's first.
    """

    operations: int
    killed_operations: int
    doubles: int
    never_sent: int
    unknown_within_lease: int
    unknown_after_lease_seconds_max: float
    resolved_by_lookup: int
    found_after_unknown_seconds_max: float
    further_sends: int
    recorded: int


def read(book: str, database: str, account: str, killed: Collection[str]) -> Figures:
    """`book` is the sandbox's SQLite file, `database` a URL; call it at rest."""
    with closing(sqlite3.connect(f"file:{book}?mode=ro", uri=True)) as db:
        refunds = [marker for (marker,) in db.execute(_REFUNDS, [account])]
        requests = [marker for (marker,) in db.execute(_REQUESTS, [account])]
    with psycopg.connect(database, row_factory=class_row(Row)) as connection:
        rows = connection.execute(_OPERATIONS.encode(), [account]).fetchall()
    return count(rows, refunds, requests, killed)


def count(
    rows: list[Row], refunds: Iterable[str], requests: Iterable[str], killed: Collection[str]
) -> Figures:
    """Pure. `refunds` and `requests`: the marker of each, as the provider has them."""
    paid, asked = Counter(refunds), Counter(requests)
    dead = [each for each in rows if each.id in killed]
    unknown = [each.unknown_after_lease for each in dead if each.unknown_after_lease is not None]
    found = [each.found_after_unknown for each in dead if each.found_after_unknown is not None]
    return Figures(
        operations=len(rows),
        killed_operations=len(dead),
        doubles=sum(paid[each.id] > 1 for each in rows),
        never_sent=sum(paid[each.id] == 0 for each in rows),
        unknown_within_lease=sum(each <= SWEEP_SECONDS + BUSY_SECONDS for each in unknown),
        unknown_after_lease_seconds_max=round(max(unknown, default=0.0), 2),
        resolved_by_lookup=len(found),
        found_after_unknown_seconds_max=round(max(found, default=0.0), 2),
        further_sends=sum(asked[each.id] - 1 for each in dead if asked[each.id]),
        recorded=sum(each.recorded for each in rows),
    )


def told(found: Figures, wanted: int, *, keys_honoured: bool) -> dict[str, bool]:
    """Each sentence about an account, and whether it is as it must be.

    Where keys are honoured a second request is harmless, and allowed.
    """
    return {
        f"{found.killed_operations} of {wanted} senders were killed after the provider had paid": (
            found.killed_operations == found.operations == wanted
        ),
        f"{found.doubles} doubles": found.doubles == 0,
        f"{found.never_sent} never sent": found.never_sent == 0,
        f"{found.unknown_within_lease} unknown within one lease and the sweep after it (at most"
        f" {found.unknown_after_lease_seconds_max} s after the lease)": (
            found.unknown_within_lease == wanted
        ),
        f"{found.resolved_by_lookup} resolved by lookup (at most"
        f" {found.found_after_unknown_seconds_max} s later), {found.recorded} recorded": (
            found.resolved_by_lookup == found.recorded == wanted
        ),
        f"{found.further_sends} further requests": keys_honoured or found.further_sends == 0,
    }
