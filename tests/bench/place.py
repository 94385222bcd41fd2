"""Servers of its own for one run: PostgreSQL with the usual durability, a broker, a provider.

Nothing of it is left afterwards, not even after a SIGKILL.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import sql

from config import embedded
from config.supervision.guardian import MARK_VARIABLE
from tests.bench.ground import Ground
from tests.guarded import Guarded
from tests.provider_process import ROOT
from tests.walkthrough.programs import Program

# What the migrations make, and people; every measured database begins as a copy of it.
PATTERN = "pattern"
_BELLS = {PATTERN: 0, "small": 2, "large": 3}  # 1 is the cache
STOP_SECONDS = 10


def ended(running: subprocess.Popen[str]) -> None:
    """Close what a child listens to, and kill it where that is not enough."""
    try:
        running.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()


class Place:
    """Use it as a context manager; `ground(name)` is an installation on a database of that name."""

    def __init__(self, *, latency_ms: int, approval: str) -> None:
        self._latency_ms, self._approval = latency_ms, approval
        self.run_dir = Path(tempfile.mkdtemp(prefix="bench-"))
        self._token = secrets.token_hex(16)
        home = embedded.home_for(ROOT, self.run_dir, "demo")
        self.database, self.bell = embedded.servers_for(home, "demo")
        self._provider: subprocess.Popen[str] | None = None
        self.provider_url = ""

    def __enter__(self) -> Self:
        self._guarded = Guarded(self._token, self.run_dir, self.database, self.bell)
        try:
            self.database.ensure(PATTERN)
            self._as_measured()
            self.bell.ensure()
            self._start_provider()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def provider_pid(self) -> int:
        assert self._provider is not None
        return self._provider.pid

    def ground(self, name: str) -> Ground:
        """Each database has bells and witnesses of its own: one is not mistaken for another."""
        return Ground(
            database=self.database.url(name),
            broker=self.bell.url(_BELLS[name]),
            cache=self.bell.cache_url(),
            provider=self.provider_url,
            run_dir=self.run_dir / name,
            approval=self._approval,
        )

    def server(self, name: str = "postgres") -> psycopg.Connection[Any]:
        """A connection of the measuring side, whose statements count for nobody."""
        return psycopg.connect(self.database.url(name), autocommit=True)

    def copy(self, name: str) -> None:
        """A database as the migrations and `people` left the pattern."""
        with self.server() as database:
            database.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(PATTERN)
                )
            )

    def tell_server(self, name: str, value: str) -> None:
        """Change a setting of the server for good; some need `restart`."""
        with self.server() as database:
            database.execute(
                sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
            )
            database.execute("SELECT pg_reload_conf()")

    def program(self, name: str, command: list[str], environment: dict[str, str]) -> Program:
        """A program that ends with this place."""
        marked = environment | {MARK_VARIABLE: self._token}
        return Program(name, command, marked, self.run_dir / f"{name}.log")

    def child(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        """A program that is spoken to by lines; it ends with its standard input."""
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment | {MARK_VARIABLE: self._token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _as_measured(self) -> None:
        """As a production server logs, with the statistics that tell round trips and page images."""
        self.tell_server("wal_level", "replica")
        self.tell_server("shared_preload_libraries", "pg_stat_statements")
        self.tell_server("shared_buffers", "512MB")
        self.tell_server("max_wal_size", "4GB")
        self.database.stop()
        self.database.ensure(PATTERN)
        with self.server() as database:
            database.execute("CREATE EXTENSION pg_stat_statements")
            database.execute("CREATE EXTENSION pg_walinspect")

    def _start_provider(self) -> None:
        command = [sys.executable, "-m", "tests.bench.provider", "0", str(self._latency_ms)]
        self._provider = self.child(command, dict(os.environ))
        assert self._provider.stdout is not None
        self.provider_url = self._provider.stdout.readline().strip()
        assert self.provider_url.startswith("http://"), "the provider did not start"

    def _end(self) -> None:
        if self._provider is not None:
            ended(self._provider)
        self._guarded.end()
