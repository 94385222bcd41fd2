"""An installation of an older release of this repository, and programs of this one beside it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.outages.house import House
from tests.provider_process import ROOT
from tests.walkthrough.installation import DATABASE, ready_words
from tests.walkthrough.programs import Program

# Its schema and its programs; three migrations have come since.
RELEASE = "e5987e941d305442b95d765f0140cd4ac162282d"
# Its programs still write columns that a migration since then has dropped.
RELEASE_NOT_EXPANDED = "3d21d32502f1672889b419ce9ba53e122978e698"
_LOOK_SECONDS = 0.03
# The one that migrates is told by its name: what it waits for itself is bounded by lock_timeout.
MIGRATOR = "migrator"
_WAITING = """
SELECT extract(epoch FROM clock_timestamp() - l.waitstart)::float8, l.relation::regclass::text,
       a.application_name
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE NOT l.granted AND l.locktype = 'relation' AND l.waitstart IS NOT NULL"""


def missing() -> str:
    """Why there is no older release here, or ''."""
    for commit in (RELEASE, RELEASE_NOT_EXPANDED):
        known = subprocess.run(
            ["git", "cat-file", "-e", f"{commit}^{{commit}}"],
            cwd=ROOT,
            check=False,
            capture_output=True,
        )
        if known.returncode != 0:
            return f"the older release is the commit {commit[:7]}, which this clone does not have"
    return ""


class OlderHouse(House):
    """Everything in it is of the release `commit`, until `upgrade` and `beside`."""

    def __init__(self, commit: str) -> None:
        super().__init__(settings={"PGAPPNAME": "program"})
        self.code = self.run_dir / "older"
        self.code.mkdir()
        packed = subprocess.run(
            ["git", "archive", "--format=tar", commit], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", str(self.code)], input=packed.stdout, check=True)

    def upgrade(self) -> tuple[float, str]:
        """Run this release's migrations; how long they took, and what is wrong ('' when nothing)."""
        began = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--no-input"],
            cwd=ROOT,
            env=self.environment | {"PGAPPNAME": MIGRATOR},
            check=False,
            capture_output=True,
            text=True,
        )
        last_words = ran.stderr.strip().rpartition("\n")[2]
        return round(time.monotonic() - began, 1), last_words if ran.returncode else ""

    def beside(self, name: str) -> Program:
        """Start this release's program of that name; the older one, if it runs, goes on."""
        command = [each.replace("@%h", "-newer@%h") for each in self._commands()[name]]
        if name == "beat":
            command[-1] += "-newer"
        level = [] if name == "web" else ["--loglevel", "INFO"]
        program = Program(
            f"newer-{name}",
            [sys.executable, *command, *level],
            self.environment,
            self.logs / f"newer-{name}.log",
        )
        program.start()
        self.programs[program.name] = program
        program.wait_for_words(ready_words(name))
        return program

    def end_older(self, name: str) -> None:
        """As a deploy does it."""
        program = self.programs[name]
        program.ask_to_stop()
        program.end()

    def only(self, refunds_since: str) -> str:
        """A URL under which the past is not seen: operations from that id on, and their accounts."""
        with psycopg.connect(self._database.url(DATABASE), autocommit=True) as database:
            database.execute("CREATE SCHEMA judged")
            for table, which in (
                ("operation", f"id > '{refunds_since}'"),
                ("payment", "provider_account <> 'bench'"),
                ("provider_refund", "provider_account <> 'bench'"),
            ):
                view = f"CREATE VIEW judged.{table} AS SELECT * FROM public.{table} WHERE {which}"
                database.execute(view.encode())
        return f"{self.database}&options=-c%20search_path%3Djudged%2Cpublic"


class LockWatch:
    """Looks all the time who waits for a table, and for how long."""

    def __init__(self, database: str) -> None:
        self.longest_seconds, self.longest_for = 0.0, ""
        self.looks = 0
        self._database = database
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        watch = threading.Thread(target=self._watch)
        watch.start()
        try:
            yield
        finally:
            self._over.set()
            watch.join()

    def _watch(self) -> None:
        with psycopg.connect(self._database, autocommit=True, application_name="watch") as database:
            while not self._over.is_set():
                for seconds, table, name in database.execute(_WAITING.encode()).fetchall():
                    if name != MIGRATOR and seconds > self.longest_seconds:
                        self.longest_seconds, self.longest_for = float(seconds), str(table)
                self.looks += 1
                self._over.wait(_LOOK_SECONDS)


STOCKED = Path(__file__).with_name("stocked.py")
