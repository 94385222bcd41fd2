"""A disk of a few megabytes that can be full: of the database, and of the programs' logs.

It is a tmpfs in a mount namespace of this program's own (Linux, as root): nobody else sees it, and
it is gone with the last process that does.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import psycopg

from config.embedded import Postgres, places
from tests.outages.asked import Asked
from tests.outages.house import Going, House
from tests.outages.judged import Verdict
from tests.walkthrough.programs import wait_until

DATABASE_MEGABYTES, LOGS_MEGABYTES = 320, 4
CHUNK_BYTES = 65_536
# The lease is 7 s: whoever was sending when the server went is found by its end.
FULL_SECONDS, DOWN_SECONDS = 15.0, 12.0
BACK_SECONDS_MAX = 60
AGAIN_SECONDS = 0.2
BEFORE, AFTER = 10, 5
HELD, HELD_MIN, HELD_SECONDS_MAX = 6, 3, 60
_HELD = "SELECT count(*) FROM holds WHERE state = 'waiting'"


def own_mounts() -> str:
    """From here on what this process mounts is seen by it and its children alone. Why not, or ''."""
    try:
        os.unshare(os.CLONE_NEWNS)
    except (OSError, AttributeError) as error:
        return f"a disk of its own needs a mount namespace (Linux, as root): {error}"
    ran = subprocess.run(
        ["mount", "--make-rprivate", "/"], check=False, capture_output=True, text=True
    )
    return ran.stderr.strip()


class SmallDisk:
    """`folder` becomes one, and is empty."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        places.make_folders(folder)
        options = f"size={megabytes}m,mode=0755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "outage", str(folder)], check=True)

    def fill(self) -> int:
        """Until not one byte more can be written; how many were."""
        written = 0
        with (self.folder / "ballast").open("ab", buffering=0) as ballast, suppress(OSError):
            for size in (CHUNK_BYTES, 512, 1):
                with suppress(OSError):
                    while True:
                        written += ballast.write(b"\0" * size)
        return written

    def free(self) -> None:
        (self.folder / "ballast").unlink()

    def end(self) -> None:
        """Nobody may use it any more."""
        subprocess.run(["umount", str(self.folder)], check=True)


class _Server(Postgres):
    """A server whose files, but not its log, lie on a small disk."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, durable=True)
        self.log = self.home / "postgres.log"
        self.disk = SmallDisk(self.folder, DATABASE_MEGABYTES)

    def stop(self) -> None:
        super().stop()
        self.disk.end()


class _HouseOnIt(House):
    def __init__(self, broken: str) -> None:
        super().__init__(broken=broken)
        self.server = _Server(self._database.home)
        self._database = self.server


def database_full(asked: Asked) -> Verdict:
    """Nothing more can be stored; and once more while answers are on the way and PostgreSQL wants
    room for its log, of which it may panic: then it is started again, as an operator would.
    """
    broken = "lease-requeue" if asked.broken == "requeue" else ""
    with _HouseOnIt(broken) as here, Going(here, asked) as going:
        going.until_more(BEFORE)
        _be_full(here.server, FULL_SECONDS)
        full_back_seconds = going.until_more(AFTER)
        _hold_some(here)
        _be_full(here.server, DOWN_SECONDS, wants_log=True)
        here.provider.release()
        started_again = not here.server.alive()
        here.server.ensure("aftersend")
        back_seconds = going.until_more(AFTER)
        going.rest()
        said = here.server.log.read_text(errors="replace")
        alive = [name for name, each in here.programs.items() if each.runs()]
        verdict = going.judged()
    refused, panics = said.count("No space left on device"), said.count("PANIC:")
    verdict.check(
        "full", f"the server met the full disk {refused} times, {panics} panics", holds=refused > 0
    )
    unknown = verdict.figures["unknown_meanwhile"]
    verdict.check("found", f"{unknown} lost answers were found out", holds=unknown > 0)
    verdict.check(
        "by_itself",
        f"{len(alive)} of {len(here.programs)} programs ran on;"
        f" {AFTER} refunds succeeded {full_back_seconds} s after there was space, and"
        f" {back_seconds} s after there was space again",
        holds=len(alive) == len(here.programs)
        and max(full_back_seconds, back_seconds) <= BACK_SECONDS_MAX,
    )
    verdict.figures |= {
        "refused_for_space": refused,
        "panics": panics,
        "server_started_again": started_again,
        "back_seconds": [full_back_seconds, back_seconds],
    }
    return verdict


def _hold_some(here: House) -> None:
    """Some are paid, and their answers on the way: whoever sent them has no database to tell."""
    here.provider.fault("hold", account="plain-nokeys", times=HELD)
    book = sqlite3.connect(f"file:{here.provider.book_file}?mode=ro", uri=True)
    with closing(book), suppress(TimeoutError):  # that they are too few is told by a check
        wait_until(
            lambda: book.execute(_HELD).fetchone()[0] >= HELD_MIN,
            seconds=HELD_SECONDS_MAX,
            what="held answers",
        )


def _be_full(server: _Server, seconds: float, *, wants_log: bool = False) -> None:
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        server.disk.fill()
        with suppress(psycopg.Error):
            if wants_log:
                _ask_for_more_log(server)
        time.sleep(AGAIN_SECONDS)
    server.disk.free()


def _ask_for_more_log(server: _Server) -> None:
    """Commit after commit, until there is no room for one."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as asked:
        while True:
            asked.execute("SELECT pg_logical_emit_message(true, 'outage', repeat('x', 1000000))")


class _HouseThatLogsThere(House):
    def __init__(self, broken: str) -> None:
        super().__init__(broken=broken, broken_module="tests.outages.broken")
        self.logs = self.run_dir / "logs"
        self.disk = SmallDisk(self.logs, LOGS_MEGABYTES)

    def _end(self) -> None:
        for program in self.programs.values():
            program.ask_to_stop()
        for program in self.programs.values():
            program.end()
        self.disk.end()
        super()._end()


def logs_full(asked: Asked) -> Verdict:
    """No program can write a line any more: sending goes on, and nothing becomes unknown by it."""
    with _HouseThatLogsThere(asked.broken) as here, Going(here, asked) as going:
        going.until_more(BEFORE)
        here.disk.fill()
        sizes = {each.log: each.log.stat().st_size for each in here.programs.values()}
        before = going.succeeded
        began = time.monotonic()
        while time.monotonic() < began + FULL_SECONDS:
            here.disk.fill()
            time.sleep(AGAIN_SECONDS)
        meanwhile = going.succeeded - before
        grown = sum(log.stat().st_size - size for log, size in sizes.items())
        here.disk.free()
        going.until_more(AFTER)
        going.rest()
        later = sum(log.stat().st_size - size for log, size in sizes.items()) - grown
        alive = [name for name, each in here.programs.items() if each.runs()]
        verdict = going.judged()
    verdict.check(
        "full",
        f"the logs grew by {grown} bytes meanwhile, and by {later} afterwards",
        holds=grown < CHUNK_BYTES and later > 0,
    )
    verdict.check(
        "goes_on",
        f"{meanwhile} refunds succeeded meanwhile, {len(alive)} of {len(here.programs)} programs"
        " are alive",
        holds=meanwhile > 0 and len(alive) == len(here.programs),
    )
    unknown = verdict.figures["unknown_meanwhile"]
    verdict.check("unknowns", f"{unknown} refunds became unknown", holds=unknown == 0)
    verdict.figures |= {"succeeded_meanwhile": meanwhile}
    return verdict
