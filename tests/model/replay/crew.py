"""Workers that stop where a trace says, for as long as it says: threads, of which one runs at a time.

Whoever drives hands the turn to a worker and has it back when that worker stands somewhere, or is
done. A worker has a connection to the database of its own, as a process has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from django.db import connection

from tests.simulation.wire import Killed

_PATIENCE_SECONDS = 120
_here = threading.local()


def this_worker() -> Worker | None:
    """Which worker runs in this thread; None in the thread that drives."""
    return getattr(_here, "worker", None)


class Worker:
    """`stands` is where it waits for its turn (a word), or empty when it has nothing to do."""

    def __init__(self, clock_shows: Callable[[], None]) -> None:
        self.stands = ""
        self.said: object = None
        self.failed: BaseException | None = None
        self.found: Any = None  # what it stands at brought with it, for whoever drives
        self.bells: list[tuple[str, str]] = []
        self._clock_shows = clock_shows
        self._turns: SimpleQueue[Any] = SimpleQueue()
        self._back: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    # The side of whoever drives

    def begin(self, job: Callable[[], object]) -> None:
        """Do this until it stands somewhere, or to the end."""
        assert not self.stands, f"it still stands at {self.stands}"
        self.said, self.failed, self.found, self.bells = None, None, None, []
        self.go_on(job)

    def go_on(self, what: Any = None) -> None:
        """The turn, with what the place where it stands is to do; an exception is raised there."""
        self.stands = ""
        self._turns.put(what)
        self._back.get(timeout=_PATIENCE_SECONDS)
        if self.failed is not None:
            raise self.failed

    def end(self) -> None:
        """Its thread ends, its connection with it."""
        if self.stands:
            self.go_on(Killed())
        self._turns.put(None)
        self._thread.join(_PATIENCE_SECONDS)

    # The side of the worker

    def stand(self, where: str, found: Any = None) -> Any:
        """Wait here for a turn; returns what came with it."""
        self.stands, self.found = where, found
        self._back.put(None)
        what = self._turns.get()
        self._clock_shows()
        if isinstance(what, BaseException):
            raise what
        return what

    def _live(self) -> None:
        _here.worker = self
        while (job := self._turns.get()) is not None:
            try:
                self._clock_shows()
                self.said = job()
            except Killed:
                self.said = "killed"
            except BaseException as failed:  # told to whoever drives, in whose thread it counts
                self.failed = failed
            self._back.put(None)
        connection.close()


class Crew:
    """Workers by the names that a trace gives them; a thread that is free is taken again."""

    def __init__(self, clock_shows: Callable[[], None]) -> None:
        self._clock_shows = clock_shows
        self._all: list[Worker] = []
        self.named: dict[str, Worker] = {}

    def free(self, name: str) -> Worker:
        """Somebody of this name who has nothing to do; who still stands somewhere sleeps on."""
        known = self.named.get(name)
        if known is None or known.stands:
            taken = set(self.named.values())
            idle = [each for each in self._all if not each.stands and each not in taken]
            if not idle:
                idle = [Worker(self._clock_shows)]
                self._all += idle
            self.named[name] = idle[0]
        return self.named[name]

    def dies(self, name: str) -> object:
        """Whoever stands under this name is gone from there; nothing where nobody does."""
        worker = self.named.get(name)
        if worker is None or not worker.stands:
            return None
        worker.go_on(Killed())
        return "dead"

    def standing(self) -> list[Worker]:
        return [each for each in self._all if each.stands]

    def dismiss(self) -> None:
        """Whoever still stands dies there; names are free for the next trace."""
        for each in self.standing():
            each.go_on(Killed())
        self.named = {}

    def end(self) -> None:
        for each in self._all:
            each.end()
