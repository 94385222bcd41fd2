"""The database server that is measured: whether it keeps what it commits, and has what it should."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from tests.bench.ground import SCHEMA

# A commit that is not on the disk, or a torn page, is not what anybody would run.
KEEPS = ("fsync", "synchronous_commit", "full_page_writes")
Catalog = frozenset[tuple[str, str]]

_INDEXES = "SELECT tablename || '.' || indexname, indexdef FROM pg_indexes WHERE schemaname = %s"
_CONSTRAINTS = """
SELECT r.relname || '.' || c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %s"""
_TRIGGERS = """
SELECT r.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
FROM pg_trigger t JOIN pg_class r ON r.oid = t.tgrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %s AND NOT t.tgisinternal"""


def settings(database: psycopg.Connection[Any]) -> dict[str, str]:
    """How the server commits, as it says itself."""
    return {name: _one(database, f"SHOW {name}") for name in (*KEEPS, "wal_level")}


def unsafe(shown: dict[str, str]) -> list[str]:
    """Why figures of such a server count for nothing."""
    return [f"{name} is {shown[name]}" for name in KEEPS if shown[name] != "on"]


def catalog(database: psycopg.Connection[Any]) -> Catalog:
    """Every index, constraint and trigger of the product, by name and definition."""
    return frozenset(
        (str(name), str(definition))
        for statement in (_INDEXES, _CONSTRAINTS, _TRIGGERS)
        for name, definition in database.execute(statement, [SCHEMA])
    )


def differences(found: Catalog, made: Catalog) -> list[str]:
    """What the measured database lacks or has too much, against what the migrations make."""
    here, there = dict(found), dict(made)
    lacking = [f"{name} is missing" for name in sorted(there.keys() - here.keys())]
    more = [f"{name} is not of the migrations" for name in sorted(here.keys() - there.keys())]
    other = [
        f"{name} is another" for name in sorted(here.keys() & there) if here[name] != there[name]
    ]
    return lacking + more + other


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the server's counters stand."""

    transactions: int
    wal: str

    @classmethod
    def of(cls, database: psycopg.Connection[Any]) -> Mark:
        """Now. Only transactions that wrote have taken a number."""
        return cls(
            int(_one(database, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")),
            _one(database, "SELECT pg_current_wal_insert_lsn()::text"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written since a mark; `images_bytes` are whole pages after a checkpoint, which
    come with time and not with the work."""

    transactions: int
    wal_bytes: int
    images_bytes: int


def written(database: psycopg.Connection[Any], since: Mark) -> Written:
    """Everything that the server wrote between the mark and now."""
    now = Mark.of(database)
    # What is not flushed yet cannot be inspected; a commit flushes it.
    database.execute("SELECT pg_logical_emit_message(true, 'bench', '')")
    row = database.execute(
        "SELECT coalesce(sum(record_size), 0)::bigint, coalesce(sum(fpi_size), 0)::bigint"
        " FROM pg_get_wal_stats(%s, %s)",
        [since.wal, now.wal],
    ).fetchone()
    assert row is not None
    return Written(
        transactions=now.transactions - since.transactions,
        wal_bytes=row[0],
        images_bytes=row[1],
    )


def forget_statements(database: psycopg.Connection[Any]) -> None:
    database.execute("SELECT pg_stat_statements_reset()")


# What deferred keys and triggers ask at a commit is counted as if a program had sent it.
_SENT = """
FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
WHERE r.rolname = %s AND s.toplevel AND s.query NOT LIKE '%%FROM ONLY%%'
  AND s.query NOT LIKE '%%NEW.%%'"""


def round_trips(database: psycopg.Connection[Any], role: str) -> int:
    """Statements that programs of this role sent since the last `forget_statements`."""
    row = database.execute("SELECT coalesce(sum(s.calls), 0)::bigint" + _SENT, [role]).fetchone()
    assert row is not None
    return int(row[0])


def statements(database: psycopg.Connection[Any], role: str) -> list[tuple[int, float, str]]:
    """(calls, milliseconds in the server, beginning of the text) of a role, the dearest first."""
    return database.execute(
        "SELECT s.calls, round(s.total_exec_time::numeric, 1)::float, left(s.query, 100)"
        + _SENT
        + " ORDER BY s.total_exec_time DESC LIMIT 12",
        [role],
    ).fetchall()


def _one(database: psycopg.Connection[Any], statement: str) -> str:
    row = database.execute(statement).fetchone()
    assert row is not None
    return str(row[0])
