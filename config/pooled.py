"""Connections that a program's threads share.

A restart, a failover or a restore ends every connection at once. The pool looks at the one it
hands out and pauses after each broken one, longer each time: a request that meets three of them
is out of time. So whoever meets the first has all of them looked at and replaced.
"""

from __future__ import annotations

import select
from typing import Any

from psycopg_pool import ConnectionPool

# A request that gets no connection in so many seconds is answered with 503; nothing is recorded
# then.
_WAIT_SECONDS = 5
_KEPT_MIN = 4


def options(size: int) -> dict[str, Any]:
    """The pool of a program, as Django's DATABASES wants it: at most `size` connections."""
    return {
        "min_size": min(_KEPT_MIN, size),
        "max_size": size,
        "timeout": _WAIT_SECONDS,
        "check": check,
    }


def check(connection: Any) -> None:
    """Raises psycopg's OperationalError for a connection that is broken, having replaced the others.

    A server that ends a connection says so; one of which nothing was heard is not asked anything.
    """
    if not _has_said_something(connection):
        return
    pool: ConnectionPool[Any] | None = connection._pool
    try:
        ConnectionPool.check_connection(connection)
    except Exception:
        if pool is not None:
            pool.check()
        raise


def _has_said_something(connection: Any) -> bool:
    """Nothing is owed on an idle connection: what can be read there is its end, or a warning."""
    heard = select.poll()
    heard.register(connection.fileno(), select.POLLIN)
    return bool(heard.poll(0))
