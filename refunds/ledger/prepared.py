"""Statements of the hot path: planned once for each connection, not once for each refund.

The server takes as long to plan a claim as to make it. A statement that runs through here is sent
with its values apart, prepared at its first use on a connection, and planned without them. Every
value that stands where its type cannot be told is cast in the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection
from psycopg import Cursor


def one(statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The first row that the statement returns. Raises what Django's own cursor would raise."""
    found = rows(statement, values)
    return found[0] if found else None


def rows(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """All rows that the statement returns."""
    connection.ensure_connection()
    # Through Django's own wrapper: its errors, its guard of a broken transaction, its observers.
    plain: Any = Cursor(connection.connection)
    wrapped = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with wrapped(plain) as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
