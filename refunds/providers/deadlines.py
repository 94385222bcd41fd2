"""One thread that ends calls whose time is up: a timer of its own for each would start a thread.

Starting one waits until it runs, which takes longer than the rest of a call where many threads want
to run.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Watched:
    """One call: `at` on the monotonic clock, and what ends it; None once it has ended by itself."""

    at: float
    no: int
    end: Callable[[], None] | None = field(compare=False)

    def call_off(self) -> None:
        """Nothing is left to end."""
        self.end = None


class Deadlines:
    """Shared by the threads of one process; its own thread begins with the first call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: list[Watched] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def watch(self, seconds: float, end: Callable[[], None]) -> Watched:
        """Call `end` after so many seconds, unless it is called off."""
        with self._changed:
            watched = Watched(time.monotonic() + seconds, next(self._numbers), end)
            heapq.heappush(self._watched, watched)
            if self._thread is None or not self._thread.is_alive():  # or left behind by a fork
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            elif self._watched[0] is watched:
                self._changed.notify()
        return watched

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watched:
                    self._changed.wait()
                left = self._watched[0].at - time.monotonic()
                if left > 0 and self._watched[0].end is not None:
                    self._changed.wait(left)
                    continue
                due = heapq.heappop(self._watched)
            end = due.end
            if end is not None:
                end()


OF_THIS_PROCESS = Deadlines()
