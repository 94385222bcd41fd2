"""A backup of one PostgreSQL database, its restore, and the time in which nobody may enter it.

All of it while programs go on: their connections end, as they do when a server goes away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql


@dataclass(frozen=True)
class Backup:
    """`server` is a libpq DSN or URL of another database of the same server, such as `postgres`."""

    server: str
    name: str

    @property
    def copy(self) -> str:
        """The name of the backup."""
        return f"{self.name}_backup"

    @property
    def lost(self) -> str:
        """The name of what was in the database's place before the restore."""
        return f"{self.name}_lost"

    def take(self) -> None:
        """Copy the database as it is now."""
        with self._entered() as server:
            _say(server, "DROP DATABASE IF EXISTS {}", self.copy)
            self._empty(server)
            _say(server, "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", self.copy, self.name)
            _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name)

    def restore(self) -> None:
        """Put the copy in the database's place; what was written since is in `lost` alone."""
        with self._entered() as server:
            self._empty(server)
            _say(server, "ALTER DATABASE {} RENAME TO {}", self.name, self.lost)
            _say(server, "ALTER DATABASE {} RENAME TO {}", self.copy, self.name)
            for name in (self.name, self.lost):
                _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS true", name)

    def forget(self) -> None:
        """Remove what is left of either."""
        with self._entered() as server:
            for name in (self.copy, self.lost):
                _say(server, "DROP DATABASE IF EXISTS {}", name)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody may enter the database while the block runs, and whoever is inside is put out."""
        with self._entered() as server:
            self._empty(server)
            try:
                yield
            finally:
                _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name)

    @contextmanager
    def _entered(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.server, autocommit=True) as server:
            yield server

    def _empty(self, server: psycopg.Connection) -> None:
        _say(server, "ALTER DATABASE {} ALLOW_CONNECTIONS false", self.name)
        server.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
            [self.name],
        )


def _say(server: psycopg.Connection, statement: str, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
