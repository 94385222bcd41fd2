"""A backup of the test's own database, and its restore while programs go on sending."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

BACKUP, LOST = "aftersend_backup", "aftersend_lost"


def _name() -> str:
    return str(connection.settings_dict["NAME"])


@contextmanager
def _server() -> Iterator[psycopg.Connection]:
    """A connection beside the test's database, which nobody enters meanwhile."""
    connection.close()
    beside = connection.settings_dict | {"NAME": "postgres"}
    with psycopg.connect(
        dbname=beside["NAME"],
        host=beside["HOST"] or beside["OPTIONS"].get("host", ""),
        port=beside["PORT"] or beside["OPTIONS"].get("port", ""),
        user=beside["USER"],
        password=beside["PASSWORD"],
        autocommit=True,
    ) as server:
        yield server


def _say(server: psycopg.Connection, statement: str, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _empty(server: psycopg.Connection, name: str) -> None:
    _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
    )


def back_up() -> None:
    """Copy the database as it is now."""
    with _server() as server:
        _say(server, "DROP DATABASE IF EXISTS {}", BACKUP)
        _empty(server, _name())
        _say(server, "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", BACKUP, _name())
        _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS true", _name())


def restore() -> None:
    """Put the copy in the database's place; what was written since is lost."""
    assert settings.TESTING
    with _server() as server:
        _empty(server, _name())
        _say(server, "ALTER DATABASE {} RENAME TO {}", _name(), LOST)
        _say(server, "ALTER DATABASE {} RENAME TO {}", BACKUP, _name())
        _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS true", _name())


def forget() -> None:
    """Remove what is left of either."""
    with _server() as server:
        for name in (BACKUP, LOST):
            _say(server, "DROP DATABASE IF EXISTS {}", name)
