"""A program whose threads share connections: none is kept while nothing is asked."""

from __future__ import annotations

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

# Classes of SQLSTATE: connection exception, insufficient resources, operator intervention.
_AWAY = ("08", "53", "57")
_STATEMENT_TOO_LONG = "57014"


def let_go() -> None:
    """Give this thread's connection back before it waits for somebody else, a provider say. Where
    each thread keeps its own, nothing happens.

    Fewer connections than threads are enough then, and each of them, with the plans that it keeps,
    is in use all the time.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()


def is_lost(error: BaseException) -> bool:
    """Whether this says that the database went away, and nothing about what was asked of it.

    A statement that was ended by its time limit is not that: it may be what was asked.
    """
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = cause.sqlstate
    return state is None or (state.startswith(_AWAY) and state != _STATEMENT_TOO_LONG)
