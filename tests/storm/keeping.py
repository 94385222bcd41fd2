"""What an operator's supervisor does: dead programs are started again; and sleepers wake in time."""

from __future__ import annotations

import os
import signal
import time

from tests.storm.house import House
from tests.storm.points import IN_FINDERS, IN_WEB, Struck, struck
from tests.storm.progress import Progress

LOOK_SECONDS = 0.1
# The lease is 7 s; the quiet period is 10 s where lookups lag, 8 s elsewhere.
PAUSE_SECONDS = 14.0
FINDERS_PAUSE_SECONDS = 9.0
WEB_PAUSE_SECONDS = 3.0


class Keeper:
    """Runs until the storm is over; `pauses` counts who was stopped and woken."""

    def __init__(self, here: House, progress: Progress) -> None:
        self.here, self.progress = here, progress
        self._asleep_since: dict[Struck, float] = {}
        self._woken: set[Struck] = set()

    @property
    def pauses(self) -> int:
        return len(self._woken)

    def run(self) -> None:
        while not self.progress.over.is_set():
            self._start_dead()
            self._wake(all_of_them=False)
            self.progress.over.wait(LOOK_SECONDS)
        self._wake(all_of_them=True)

    def _start_dead(self) -> None:
        for program in self.here.programs.values():
            if program.runs():
                continue
            # Children whose parent died are of no use to the next one.
            program.kill_all()
            program.start()
            self.progress.add(restarts=1)

    def _wake(self, *, all_of_them: bool) -> None:
        now = time.monotonic()
        stopped = {each for each in struck(self.here.orders) if each.kind == "stop"}
        for each in stopped - self._woken:
            since = self._asleep_since.setdefault(each, now)
            if all_of_them or now >= since + _pause_seconds(each.point):
                self._woken.add(each)
                _wake(each.pid)


def _pause_seconds(point: str) -> float:
    name = point.partition(".")[0]
    if name in IN_WEB:
        return WEB_PAUSE_SECONDS
    return FINDERS_PAUSE_SECONDS if name in IN_FINDERS else PAUSE_SECONDS


def _wake(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return  # killed in its sleep
