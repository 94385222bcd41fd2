"""Statements that are asked often: planned once for each connection, not each time.

The server takes as long to plan a claim as to make it, and longer to plan the counts of a page than
to count. A statement that runs through here is sent with its values apart, prepared at its first
use on a connection, and planned without them. Every value that stands where its type cannot be told
is cast in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import RawCursor

_NAMED = re.compile(r"%\((\w+)\)s")


def one(statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The first row that the statement returns. Raises what Django's own cursor would raise."""
    found = rows(statement, values)
    return found[0] if found else None


def rows(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """All rows that the statement returns; `values` stand in it as `%(name)s`."""
    connection = connections[DEFAULT_DB_ALIAS]  # asked once: each use of Django's proxy asks again
    connection.ensure_connection()
    text, names = _numbered(statement)
    # Through Django's own wrapper: its errors, its guard of a broken transaction, its observers.
    plain: Any = RawCursor(connection.connection)
    wrapped = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with wrapped(plain) as cursor:
        cursor.execute(text, [values[name] for name in names])
        return list(cursor.fetchall())


@cache
def _numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """The statement as the server takes it, and whose value each number is. Read once: finding the
    places in a long statement takes longer than filling them."""
    names = tuple(dict.fromkeys(_NAMED.findall(statement)))
    numbers = {name: f"${no}" for no, name in enumerate(names, 1)}
    return _NAMED.sub(lambda place: numbers[place[1]], statement), names
