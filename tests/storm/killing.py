"""SIGKILL from outside: children in the middle of a send, whole workers, beat and web."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from typing import Any

from tests.storm.drawn import UNGUARDED
from tests.storm.house import SENDERS, House
from tests.storm.progress import Progress
from tests.storm.reader import SENDING, Reader

SENDING_SHARE = 1 / 3
# What is killed where no send is: a child of a sender, or a whole program.
OTHERS = {"child": 12, "worker-money": 1, "worker-money-other": 1, "worker-lookups": 2, "beat": 1}
CATCH_SECONDS_MAX = 6
LOOK_SECONDS = 0.05
HUNT_SECONDS_MAX = 4
MADE = "SELECT marker FROM refunds WHERE marker IS NOT NULL"


class Killer:
    """Kills at the pace of the refunds, until its number is reached."""

    def __init__(self, here: House, progress: Progress, seed: int) -> None:
        self.here, self.progress = here, progress
        self.draw = random.Random(f"kill-{seed}")
        self.reader = Reader(here.database)

    def run(self) -> None:
        """Returns when all kills are done or the storm is over."""
        progress = self.progress
        while not progress.over.is_set() and progress.killed < progress.kills:
            if not progress.kills_due:
                progress.over.wait(LOOK_SECONDS)
                continue
            wanted = progress.killed_while_sending < SENDING_SHARE * (progress.killed + 1)
            if wanted and self._one_that_sends():
                progress.add(killed=1, killed_while_sending=1)
            elif self._another():
                progress.add(killed=1)
        self.reader.close()

    def _one_that_sends(self) -> bool:
        """A child whose claim is committed and whose answer is not, still so when it is dead.

        At first one whose refund is made already, at an account that would make a second one.
        """
        progress, began = self.progress, time.monotonic()
        hunts = 2 * progress.killed_after_paying <= progress.killed_while_sending
        hunts_until = began + HUNT_SECONDS_MAX * hunts
        while time.monotonic() < began + CATCH_SECONDS_MAX and not progress.over.is_set():
            hunting = time.monotonic() < hunts_until
            sending = self.reader.rows(SENDING)
            for each in self._would_pay_twice(sending) if hunting else sending:
                if not self._sends(each["pid"]) or not _kill(each["pid"]):
                    continue
                [now] = self.reader.rows(
                    "SELECT state, version FROM operation WHERE id = %s", each["id"]
                )
                if (now["state"], now["version"]) == ("submitting", each["version"]):
                    progress.add(killed_after_paying=int(hunting))
                    return True
                progress.add(killed=1)
            progress.over.wait(LOOK_SECONDS)
        return False

    def _would_pay_twice(self, sending: list[dict[str, Any]]) -> list[dict[str, Any]]:
        asked = [each for each in sending if each["account"] in UNGUARDED]
        if not asked:
            return []
        with sqlite3.connect(f"file:{self.here.provider.book_file}?mode=ro", uri=True) as book:
            made = {marker for (marker,) in book.execute(MADE)}
        book.close()
        return [each for each in asked if each["id"] in made]

    def _sends(self, pid: int) -> bool:
        """A child, or a process of threads; asked of the kernel alone, since the answer is only
        moments away."""
        try:
            group = os.getpgid(pid)
        except ProcessLookupError:
            return False
        return group in {self.here.programs[name].pid for name in SENDERS}

    def _another(self) -> bool:
        [name] = self.draw.choices([*OTHERS], [*OTHERS.values()])
        if name == "child":
            children = sorted(self._children())
            return bool(children) and _kill(self.draw.choice(children))
        program = self.here.programs[name]
        return program.runs() and _kill(program.pid)

    def _children(self) -> set[int]:
        found: set[int] = set()
        for name in SENDERS:
            program = self.here.programs[name]
            if program.runs():
                found |= set(program.members()) - {program.pid}
        return found


def _kill(pid: int) -> bool:
    """SIGKILL one process of ours; False when it is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
