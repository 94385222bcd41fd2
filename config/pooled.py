"""Connections that a program's threads share, after the database was away.

A restart, a failover or a restore ends every connection at once. The pool looks at the one it
hands out and pauses after each broken one, longer each time: a request that meets three of them
is out of time. So whoever meets the first has all of them looked at and replaced.
"""

from __future__ import annotations

from typing import Any

from psycopg_pool import ConnectionPool


def check(connection: Any) -> None:
    """Raises psycopg's OperationalError for a connection that is broken, having replaced the others."""
    pool: ConnectionPool[Any] | None = connection._pool
    try:
        ConnectionPool.check_connection(connection)
    except Exception:
        if pool is not None:
            pool.check()
        raise
