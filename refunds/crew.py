"""The senders of one process: what one wake-up becomes.

A wake-up says that something is ready, and not what. Whoever hears it looks into the database and
sends until nothing is ready any more, so that a thousand refunds need a few dozen messages. A look
takes at most one refund of each order, and no more than there are hands; each is claimed, and its
attempt recorded, by its own sender just before its send. Two processes may look at the same time:
the second one's claim finds the first one's and sends nothing.

Bells that would follow each other too closely are left out (`config.celery`). So whoever hears one
looks once more when that time has passed: what was stored meanwhile needs no bell of its own.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from uuid import UUID

from django.db import close_old_connections

from refunds import dispatch, doorbell
from refunds.ledger import connections
from refunds.models import Operation

WAKE_SPACING_SECONDS, WAKE_SPACING_SECONDS_MAX = 0.015, 0.06
# Bells a second of one program from which on they are spaced further apart.
CROWD_PER_SECOND = 100
# Well under a task's soft limit: whoever is still busy then leaves the rest to a new wake-up.
SHIFT_SECONDS = 20
# More than there are hands: two processes that look at once mostly choose others.
_LOOK_FACTOR = 2


class Crew:
    """Shared by the threads of one process; `size` is how many of them may send at once, and
    `spacing_seconds` how long after a bell another one may have been left out."""

    def __init__(self, size: int = 1, spacing_seconds: float = WAKE_SPACING_SECONDS_MAX) -> None:
        self.size = size
        self._spacing_seconds = spacing_seconds
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._called: list[Future[int]] = []
        self._found: list[Operation] = []
        self._in_hand: set[UUID] = set()
        self._at_work = 0
        self._look_again_at = 0.0
        self._nothing_since = 0.0
        self._somebody_waits = False
        self._stopping = False

    @property
    def waits(self) -> bool:
        """Whether somebody waits for what may have been stored without a bell."""
        return self._somebody_waits

    def stop(self) -> None:
        """From now on nobody takes another one; what is in hand is finished."""
        self._stopping = True

    def work(self) -> int:
        """What whoever hears a wake-up does; how many refunds were tried by it and by the hands
        that were called meanwhile. It returns when all of them are done.

        Raises what a send raises: the database is away, or a commit is not known. Nothing is lost
        by that, the sweep wakes somebody again.
        """
        with self._lock:
            self._at_work += 1
            self._look_again_at = time.monotonic() + self._spacing_seconds
        try:
            return self._shift(looks=True)
        finally:
            self._see_off()

    def _see_off(self) -> None:
        """Wait for the hands that were called: whoever ends this process waits for this task."""
        while True:
            with self._lock:
                called, self._called = self._called, []
            if not called:
                return
            wait(called)  # all of them, also where one has failed
            for each in called:
                each.result()

    def _hand(self) -> int:
        """One that was called, in a thread that keeps its connection from call to call. It takes
        what was found and looks for nothing: the more look, the more choose the same."""
        close_old_connections()
        try:
            return self._shift(looks=False)
        finally:
            close_old_connections()

    def _shift(self, *, looks: bool) -> int:
        give_up_at = time.monotonic() + SHIFT_SECONDS
        tried = 0
        try:
            while (operation := self._next(looks)) is not None:
                tried += 1
                try:
                    dispatch.send_found(operation)
                finally:
                    # Before the lock: whoever looks has it while it waits for a connection.
                    connections.let_go()
                    with self._lock:
                        self._in_hand.discard(operation.pk)
                if time.monotonic() > give_up_at:
                    doorbell.ring_ready()
                    break
        finally:
            with self._lock:
                self._at_work -= 1
        return tried

    def _next(self, looks: bool) -> Operation | None:
        """One that is ready; None when nothing is, and nothing will be by a bell left out."""
        while not self._stopping:
            came_at = time.monotonic()
            with self._lock:
                if looks and not self._found and self._nothing_since <= came_at:
                    self._look()
                if self._found:
                    operation = self._found.pop()
                    self._in_hand.add(operation.pk)
                    return operation
                wait_seconds = self._look_again_at - time.monotonic()
                if not looks or wait_seconds <= 0 or self._somebody_waits:
                    return None
                self._somebody_waits = True
            time.sleep(wait_seconds)
            with self._lock:
                self._somebody_waits = False
        return None

    def _look(self) -> None:
        """Choose among what is ready, and call more hands where that is more than they hold."""
        began_at = time.monotonic()
        seen = dispatch.ready_apart(self.size * _LOOK_FACTOR)
        connections.let_go()
        ready = [each for each in seen if each.pk not in self._in_hand]
        if not ready:
            self._nothing_since = began_at
            return
        random.shuffle(ready)
        self._found = ready[: self.size]
        for _ in range(min(len(self._found), self.size) - self._at_work):
            self._at_work += 1
            self._called.append(self._threads().submit(self._hand))

    def _threads(self) -> ThreadPoolExecutor:
        # Made when it is needed first: in the process that sends, and not in one that it forks from.
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="sender")
        return self._pool


OF_THIS_PROCESS = Crew()
