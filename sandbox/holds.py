"""Requests that wait: answers held back, and executions that land late.

They stand in the book, so a killed sandbox still lands what it had received. An instant on
the control clock decides: what fell due while the clock moved on is executed as of its due
instant, before anything else is looked at.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sandbox.book import Book
from sandbox.instants import iso, span
from sandbox.operations import Answer, Create, Fired, Twists
from sandbox.profiles import Profile

# Where D is unknown and the rule gives no seconds.
_LATE_SECONDS = 1
_PAST_FLIGHT_SECONDS = 5


@dataclass(frozen=True, kw_only=True)
class Terms:
    """When a waiting request may be executed: at `due_at`, or when released (None)."""

    due_at: int | None
    earliest_at: int
    latest_at: int | None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """`create` None: executed already, only the answer waits."""

    id: int
    account: str
    fault: str
    on: str
    marker: str | None
    create: Create | None
    twists: Twists
    received_at: int
    terms: Terms


def terms_for(fault: str, twists: Twists, profile: Profile, received_at: int) -> Terms:
    """The account's D (flight_seconds_max) bounds every wait but that of land_past_flight."""
    flight = profile.flight_seconds_max
    latest_at = None if flight is None else received_at + span(flight)
    if fault == "land_late":
        due_at = received_at + span(
            twists.seconds(fault, _LATE_SECONDS if flight is None else flight / 2)
        )
        if latest_at is not None:
            due_at = min(due_at, latest_at)
        return Terms(due_at=due_at, earliest_at=received_at, latest_at=latest_at)
    if fault == "land_past_flight":
        seconds = twists.seconds(fault, _PAST_FLIGHT_SECONDS if flight is None else flight + 1)
        earliest_at = received_at if latest_at is None else latest_at + span(0.001)
        due_at = max(earliest_at, received_at + span(seconds))
        return Terms(due_at=due_at, earliest_at=earliest_at, latest_at=None)
    options = twists.options(fault) or {}
    wait = options.get("seconds")
    return Terms(
        due_at=None if wait is None else received_at + span(wait),
        earliest_at=received_at,
        latest_at=latest_at if options.get("execute") == "on_release" else None,
    )


class Holds:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._waiters: dict[int, asyncio.Future[Answer | None]] = {}
        # An answer held back has no connection left after a restart.
        book.db.execute("""DELETE FROM holds WHERE "create" IS NULL AND state = 'waiting'""")

    def put(self, hold: Hold) -> asyncio.Future[Answer | None]:
        """Let the request wait; the future brings the answer of its execution, or None."""
        self._book.db.execute(
            """INSERT INTO holds VALUES (:id, :account, :fault, :on, :marker, :create, :twists,
                 :received_at, :due_at, :earliest_at, :latest_at, 'waiting')""",
            vars(hold)
            | vars(hold.terms)
            | {
                "create": json.dumps(asdict(hold.create)) if hold.create else None,
                "twists": json.dumps([asdict(one) for one in hold.twists.fired]),
            },
        )
        waiter: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiters[hold.id] = waiter
        return waiter

    def release(self, which: int | None, now: int) -> int:
        """Let one hold, or all of them (None), fall due as soon as it may; how many did."""
        changed = self._book.db.execute(
            """UPDATE holds SET due_at = max(:now, earliest_at)
               WHERE state = 'waiting' AND (:id IS NULL OR id = :id)
                 AND (due_at IS NULL OR due_at > :now)""",
            {"id": which, "now": now},
        )
        return changed.rowcount

    def settle(
        self,
        now: int,
        land: Callable[[Hold, int], Answer],
        expire: Callable[[Hold], None],
    ) -> int:
        """End every hold whose time has come, in order: `land` it as of its instant, or `expire`.

        Returns how many ended.
        """
        rows = self._book.db.execute(
            """SELECT * FROM holds WHERE state = 'waiting'
                 AND (due_at <= :now OR (due_at IS NULL AND latest_at < :now))
               ORDER BY coalesce(due_at, latest_at), id""",
            {"now": now},
        ).fetchall()
        for row in rows:
            hold, answer = _hold(row), None
            due_at, latest_at = hold.terms.due_at, hold.terms.latest_at
            late = due_at is None or (latest_at is not None and due_at > latest_at)
            with self._book.transaction():
                if late:
                    expire(hold)
                elif hold.create is not None and due_at is not None:
                    answer = land(hold, due_at)
                self._book.db.execute(
                    "UPDATE holds SET state = ? WHERE id = ?",
                    ("expired" if late else "landed", hold.id),
                )
            waiter = self._waiters.pop(hold.id, None)
            if waiter is not None:
                waiter.set_result(answer)
        return len(rows)

    def next_at(self) -> int | None:
        """The instant at which the next hold ends by itself."""
        row = self._book.db.execute(
            """SELECT min(coalesce(due_at, latest_at + 1)) AS at FROM holds
               WHERE state = 'waiting'"""
        ).fetchone()
        return None if row["at"] is None else int(row["at"])

    def abandon(self) -> None:
        """Let go of every connection that waits; the book keeps what is to land."""
        for waiter in self._waiters.values():
            waiter.cancel()
        self._waiters.clear()

    def shown(self) -> list[dict[str, Any]]:
        """Every hold so far as JSON, with its state: waiting, landed or expired."""
        return [
            {
                "id": row["id"],
                "account": row["account"],
                "fault": row["fault"],
                "on": row["on"],
                "marker": row["marker"],
                "executed": row["create"] is None or row["state"] == "landed",
                "received_at": iso(row["received_at"]),
                "due_at": iso(row["due_at"]) if row["due_at"] is not None else None,
                "state": row["state"],
            }
            for row in self._book.db.execute("SELECT * FROM holds ORDER BY id")
        ]


def _hold(row: sqlite3.Row) -> Hold:
    return Hold(
        id=row["id"],
        account=row["account"],
        fault=row["fault"],
        on=row["on"],
        marker=row["marker"],
        create=Create(**json.loads(row["create"])) if row["create"] else None,
        twists=Twists(tuple(Fired(**one) for one in json.loads(row["twists"]))),
        received_at=row["received_at"],
        terms=Terms(
            due_at=row["due_at"],
            earliest_at=row["earliest_at"],
            latest_at=row["latest_at"],
        ),
    )
