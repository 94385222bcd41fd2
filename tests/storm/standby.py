"""A PostgreSQL that another one follows, and that one in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from config.embedded import Postgres, places
from tests.walkthrough.programs import wait_until

CAUGHT_UP_SECONDS_MAX = 60
_BEHIND = """
SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'
AND replay_lsn >= pg_current_wal_lsn()"""


class Followed(Postgres):
    """A server that writes down what a standby needs."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, durable=True)

    def stop_at_once(self) -> None:
        """Immediate shutdown: what was not yet on the disk is not written any more."""
        self._stop("immediate")

    def _write_settings(self) -> None:
        super()._write_settings()
        with (self.cluster / "aftersend.conf").open("a") as settings:
            settings.write("wal_level = replica\nmax_wal_senders = 4\n")


class Standby(Followed):
    """Follows `primary` until it is cut off; then it can be promoted and take its place."""

    def __init__(self, primary: Followed) -> None:
        super().__init__(primary.home)
        self._primary = primary
        self.folder = self.home / "standby"
        self.cluster = self.folder / "cluster"
        self.socket_dir = self.folder / "socket"
        self.log = self.folder / "postgres.log"

    def follow(self) -> None:
        """Start on a copy of the primary; returns when it has all that the primary has."""
        places.make_folders(self.folder)
        self._lay_out()
        self._private_folder(self.cluster)
        copying = ("-d", self._primary.url("postgres"), "-D", str(self.cluster))
        self._tool("pg_basebackup", *copying, "-c", "fast", "-X", "stream", "-R")
        self._write_settings()
        self._start()
        with psycopg.connect(self._primary.url("postgres"), autocommit=True) as asked:
            wait_until(
                lambda: asked.execute(_BEHIND).fetchone() is not None,
                seconds=CAUGHT_UP_SECONDS_MAX,
                what="a standby that has everything",
            )

    def cut_off(self) -> None:
        """It hears no more of the primary, and goes on being a standby."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as asked:
            asked.execute("ALTER SYSTEM SET primary_conninfo = ''")
            asked.execute("SELECT pg_reload_conf()")
        with psycopg.connect(self._primary.url("postgres"), autocommit=True) as asked:
            wait_until(
                lambda: asked.execute("SELECT 1 FROM pg_stat_replication").fetchone() is None,
                seconds=CAUGHT_UP_SECONDS_MAX,
                what="a standby that is cut off",
            )

    def take_over(self) -> None:
        """Promote it while the primary is dead, and give it the primary's address."""
        self._tool("pg_ctl", "-D", str(self.cluster), "-w", "promote")
        self._stop("fast")
        shutil.rmtree(self._primary.cluster)
        self.cluster.rename(self._primary.cluster)
