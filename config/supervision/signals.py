"""Signals as facts to ask for, instead of exceptions that strike anywhere."""

from __future__ import annotations

import os
import select
import signal
import time
from types import FrameType, TracebackType
from typing import Self

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECOND_AFTER_SECONDS = 0.5  # one Ctrl-C may arrive twice: from the terminal and from make


class Signals:
    """While the block runs, Ctrl-C, SIGTERM and a closed terminal only leave a note here."""

    def __init__(self) -> None:
        self._first_at: float | None = None
        self.hurry_asked = False

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        for end in (self._read_end, self._write_end):
            os.set_blocking(end, False)
        self._before = {one: signal.signal(one, self._note) for one in STOPPING}
        # A child's end must wake a waiting supervisor, so the signal needs somebody to take it.
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(-1)
        for one, action in self._before.items():
            signal.signal(one, action)
        os.close(self._read_end)
        os.close(self._write_end)

    @property
    def stop_asked(self) -> bool:
        """Somebody wants everything to end."""
        return self._first_at is not None

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a signal."""
        ready, _, _ = select.select([self._read_end], [], [], seconds)
        if ready:
            os.read(self._read_end, 4096)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
        elif now - self._first_at > SECOND_AFTER_SECONDS:
            self.hurry_asked = True
