"""Every clock that the engine reads goes on together: Python's, the database's, the provider's.

What a caller holds in its hands meanwhile, an instant at which it began, stays what it was. That is
why nothing here moves stored instants into the past instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import time_machine
from django.db import connection
from django.db.backends.signals import connection_created

# Found before PostgreSQL's own of the same names.
_FUNCTIONS = """
CREATE SCHEMA IF NOT EXISTS moved;
CREATE OR REPLACE FUNCTION moved.ahead() RETURNS interval LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('moved.seconds', true), ''), '0')::float8
         * interval '1 second' $$;
CREATE OR REPLACE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT pg_catalog.clock_timestamp() + moved.ahead() $$;
CREATE OR REPLACE FUNCTION moved.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.statement_timestamp() + moved.ahead() $$;
CREATE OR REPLACE FUNCTION moved.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.now() + moved.ahead() $$;"""
_DEFAULTS = """
SELECT c.relname, a.attname, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE n.nspname = 'public'
  AND pg_get_expr(d.adbin, d.adrelid) ~ '(now|timestamp)\\(\\)' AND a.attgenerated = ''"""
_PATH = "SET search_path = moved, public, pg_catalog"
# How long two looks at the real clock may be apart for what was read between them to be of now.
_AT_ONCE_SECONDS = 0.0002


@contextmanager
def movable() -> Iterator[None]:
    """This database has clocks that can be moved; its columns' defaults read them, too."""
    with connection.cursor() as cursor:
        cursor.execute(_FUNCTIONS)
        cursor.execute(_DEFAULTS)
        defaults = cursor.fetchall()
    _set_defaults(defaults, _PATH)
    yield
    _set_defaults(defaults, "RESET search_path")
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA moved CASCADE")


def _set_defaults(defaults: list[tuple[str, str, str]], path: str) -> None:
    """The functions that a default names are those that are found by this path now."""
    with connection.cursor() as cursor:
        cursor.execute(path)
        for table, column, default in defaults:
            cursor.execute(f'ALTER TABLE "{table}" ALTER "{column}" SET DEFAULT {default}')
        cursor.execute("RESET search_path")


def _behind() -> float:
    """How far Python's clock is behind the real one, which is the database's; seconds.

    It was set to an instant of a moment ago: a process that is put aside meanwhile would write
    instants into rows that lie before what had happened already.
    """
    real = time_machine.escape_hatch.time.time
    while True:
        before, here, after = real(), time.time(), real()
        if after - before <= _AT_ONCE_SECONDS:
            return float(after - here)


class Clock:
    """Within `with`, `move` lets time pass; `seconds` says how much has, since the beginning."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._monotonic = time.monotonic

    def __enter__(self) -> Clock:
        self._after = ExitStack()
        travel = time_machine.travel(datetime.now(UTC), tick=True)
        self._traveller = self._after.enter_context(travel)
        self._traveller.shift(_behind())
        time.monotonic = lambda: self._monotonic() + self.seconds
        self._after.callback(setattr, time, "monotonic", self._monotonic)
        connection_created.connect(self.shows_here, weak=False)
        self._after.callback(connection_created.disconnect, self.shows_here)
        self.shows_here()
        return self

    def __exit__(self, *_: object) -> None:
        self._after.close()
        with connection.cursor() as cursor:
            cursor.execute("RESET search_path; RESET moved.seconds")

    def move(self, seconds: float) -> None:
        self.seconds += seconds
        self._traveller.shift(seconds)
        self.shows_here()

    def shows_here(self, **_: Any) -> None:
        """A connection reads the moved clock from its first statement on."""
        with connection.cursor() as cursor:
            cursor.execute(_PATH)
            cursor.execute("SELECT set_config('moved.seconds', %s, false)", [str(self.seconds)])
