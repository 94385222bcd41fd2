"""The run itself: what a lost answer costs, the crowd, and new refunds while it is looked up."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.due_at_once.crowd import ACCOUNTS, drawn, due_in, fill
from tests.due_at_once.measured import percentile, rates
from tests.walkthrough.installation import Installation
from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import Walk

LOST_COUNT = 15
NEW_EVERY_SECONDS = 1.0
# An account is crowded while so many seconds of asking are due.
CROWD_SECONDS = 5
TOLD_EVERY_SECONDS = 30
LEADS = ("ben", "cleo")
LATER_SECONDS = 3600
CAUGHT_UP_SECONDS_MAX = 300
MICROSECONDS = 1_000_000


@dataclass
class Afternoon:
    """One run on one installation."""

    here: Installation
    seed: int
    due: int
    rate: int
    sent: list[str] = field(default_factory=list)
    # By account, until when more of it was due than might be asked at once.
    crowded_until: dict[str, float] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """All of it; the figures."""
        walk = Walk(self.here, self.seed)
        unknown = _unknown_seconds(walk)
        print(f"A lost answer: unknown for {unknown['median']} s at the median.", flush=True)
        began = time.monotonic()
        with self.here.nobody_looks():
            fill(self.here, drawn(self.seed, self.due))
            due_in(self.here.database, LATER_SECONDS)
        self._catches_up(walk)
        crowd = due_in(self.here.database, 0)
        seconds = time.monotonic() - began
        print(f"{crowd} refunds are unknown and due, after {seconds:.0f} s of work.", flush=True)
        seen = _last_call(self.here)
        looking_seconds = self._look_on(walk, crowd)
        found = self._found(walk, seen, crowd)
        walk.end()
        return found | {"unknown_seconds": unknown, "looking_seconds": looking_seconds}

    def _catches_up(self, walk: Walk) -> None:
        """What the programs missed while nobody looked is made good first: every monitor is read.
        Else that would be measured as well."""
        woke_at = datetime.now(UTC)
        wait_until(
            lambda: walk.trail.rows(
                "SELECT coalesce(bool_and(ran_at > %s), false) AS all FROM signal_run"
                " WHERE name NOT LIKE '%%disagree%%'",
                woke_at,
            )[0]["all"],
            seconds=CAUGHT_UP_SECONDS_MAX,
            what="every monitor read once more",
        )

    def _look_on(self, walk: Walk, crowd: int) -> float:
        """Until nothing is on its way, or twice the time that it may take is over; seconds."""
        began = told_at = time.monotonic()
        fair_seconds = crowd / (self.rate * len(ACCOUNTS))
        over = threading.Event()
        # The agents and leads have connections of their own.
        busy = threading.Thread(
            target=self._new_refunds, args=(Walk(self.here, self.seed + 1), over)
        )
        busy.start()
        try:
            while time.monotonic() < began + 2 * fair_seconds + 120:
                left = _left(walk)
                if not left:
                    break
                self._note_crowds(walk)
                if time.monotonic() > told_at + TOLD_EVERY_SECONDS:
                    told_at = time.monotonic()
                    print(f"  {left} left after {told_at - began:.0f} s", flush=True)
                over.wait(1)
        finally:
            seconds = round(time.monotonic() - began, 1)
            over.set()
            busy.join()
        wait_until(walk.trail.at_rest, seconds=60, what="the last of it at rest")
        return seconds

    def _note_crowds(self, walk: Walk) -> None:
        rows = walk.trail.rows(
            "SELECT provider_account AS account FROM operation WHERE due_at <= now()"
            " GROUP BY 1 HAVING count(*) > %s",
            CROWD_SECONDS * self.rate,
        )
        self.crowded_until |= {row["account"]: time.time() for row in rows}

    def _new_refunds(self, walk: Walk, over: threading.Event) -> None:
        """One after the other is proposed, approved and sent, until it is over."""
        number = 0
        while not over.wait(NEW_EVERY_SECONDS):
            amount_minor = walk.amount()
            order = walk.order(ACCOUNTS[number % len(ACCOUNTS)], 3 * amount_minor)
            operation_id = walk.propose(order, amount_minor)
            walk.person(LEADS[number % len(LEADS)]).approve(operation_id)
            self.sent.append(operation_id)
            number += 1
        walk.end()

    def _found(self, walk: Walk, seen: int, crowd: int) -> dict[str, Any]:
        looked = _received(
            self.here,
            "SELECT account, received_at FROM calls WHERE seq > ? AND \"on\" = 'list'"
            " AND path LIKE '%payment=%'",
            seen,
        )
        by_account = {name: [at for account, at in looked if account == name] for name in ACCOUNTS}
        states = walk.trail.rows(
            "SELECT o.state, count(*) AS n FROM operation o JOIN orders r ON r.id = o.order_id"
            " WHERE r.ref LIKE 'due-%%' GROUP BY o.state ORDER BY o.state"
        )
        [cases] = walk.trail.rows("SELECT count(*) AS n FROM review_case")
        [ended] = walk.trail.rows(
            "SELECT count(*) AS n FROM operation o JOIN orders r ON r.id = o.order_id"
            " WHERE r.ref LIKE 'due-%%' AND o.state IN ('succeeded', 'failed')"
        )
        again = _received(
            self.here,
            "SELECT marker, received_at FROM calls WHERE seq > ? AND \"on\" = 'create'",
            seen,
        )
        measured = {
            name: rates(at, self.rate, self.crowded_until.get(name, 0))
            for name, at in by_account.items()
        }
        return {
            "crowd": crowd,
            "ended": ended["n"],
            "states": {row["state"]: row["n"] for row in states},
            "cases": cases["n"],
            "lookups": len(looked),
            "rates": {name: each.shown() for name, each in measured.items()},
            "dispatch_ms": self._dispatch_ms(walk, again),
            "sent_again": sum(marker not in self.sent for marker, _ in again),
        }

    def _dispatch_ms(self, walk: Walk, received: list[tuple[str, float]]) -> dict[str, Any]:
        """From the approval of each new refund to its first byte at the provider."""
        rows = walk.trail.rows(
            "SELECT operation_id::text AS id, extract(epoch FROM at)::float8 AS at FROM event"
            " WHERE event = 'approved' AND operation_id = ANY(%s::uuid[])",
            self.sent,
        )
        approved = {row["id"]: row["at"] for row in rows}
        waits = [(at - approved[marker]) * 1000 for marker, at in received if marker in approved]
        return {
            "count": len(waits),
            "p50": round(percentile(waits, 0.5)),
            "p95": round(percentile(waits, 0.95)),
        }


def _unknown_seconds(walk: Walk) -> dict[str, Any]:
    """How long refunds were unknown whose answer was lost, under the schedule of a real provider."""
    ids = []
    for _ in range(LOST_COUNT):
        amount_minor = walk.amount()
        order = walk.order("stripe-main", 3 * amount_minor)
        operation_id = walk.propose(order, amount_minor)
        walk.provider.fault("drop_after_commit", account="stripe-main")
        walk.person("ben").approve(operation_id)
        walk.trail.wait_for(operation_id, "unknown", "succeeded", seconds=30)
        ids.append(operation_id)
    for each in ids:
        walk.trail.wait_for(each, "succeeded", seconds=60)
    rows = walk.trail.rows(
        "SELECT extract(epoch FROM f.at - u.at)::float8 AS seconds FROM event f JOIN event u"
        " ON u.operation_id = f.operation_id AND u.to_state = 'unknown'"
        " WHERE f.event = 'found_succeeded' AND f.operation_id = ANY(%s::uuid[])",
        ids,
    )
    seconds = [row["seconds"] for row in rows]
    return {
        "count": len(seconds),
        "median": round(percentile(seconds, 0.5), 2),
        "highest": round(max(seconds), 2),
    }


def _left(walk: Walk) -> int:
    [row] = walk.trail.rows(
        "SELECT count(*) AS n FROM operation o JOIN orders r ON r.id = o.order_id"
        " WHERE r.ref LIKE 'due-%%' AND o.settled_at IS NULL"
    )
    return int(row["n"])


def _last_call(here: Installation) -> int:
    with closing(_book(here)) as book:
        row = book.execute("SELECT coalesce(max(seq), 0) FROM calls").fetchone()
        return int(row[0])


def _received(here: Installation, query: str, seen: int) -> list[tuple[str, float]]:
    with closing(_book(here)) as book:
        return [(name, at / MICROSECONDS) for name, at in book.execute(query, [seen])]


def _book(here: Installation) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{here.provider.book_file}?mode=ro", uri=True)
