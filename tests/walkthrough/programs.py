"""Programs of one installation: started, put to sleep, killed and ended from outside, by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.provider_process import ROOT

LOOK_SECONDS = 0.02
READY_SECONDS_MAX = 600  # on a machine that does other things, too
STOP_SECONDS_MAX = 8
LOG_TAIL_CHARACTERS = 3000

Killed = dict[str, Any]


class NotReady(RuntimeError):
    """A program did not come up; the text ends with what it wrote."""


def wait_until[T](
    look: Callable[[], T | None], *, seconds: float = 15, what: str = "what was waited for"
) -> T:
    """The first value of `look` that is neither None nor False; raises TimeoutError."""
    give_up_at = time.monotonic() + seconds
    while True:
        seen = look()
        if seen is not None and seen is not False:
            return seen
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(LOOK_SECONDS)


class Program:
    """One program in a process group of its own, which writes to a log and reads nothing."""

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: dict[str, str],
        log: Path,
        *,
        code: Path = ROOT,
    ) -> None:
        self.name = name
        self.log = log
        self._code = code
        self._command = command
        self._environment = environment
        self._running: subprocess.Popen[bytes] | None = None
        self._log_began = 0

    def start(self) -> None:
        """Launch it; see `wait_for_words` for when it is up."""
        self._log_began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._running = subprocess.Popen(
                self._command,
                cwd=self._code,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    @property
    def pid(self) -> int:
        assert self._running is not None, f"{self.name} was not started"
        return self._running.pid

    def runs(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def said(self) -> str:
        """What it wrote since its last start."""
        with self.log.open("rb") as written:
            written.seek(self._log_began)
            return written.read().decode(errors="replace")

    def wait_for_words(self, words: str) -> None:
        """Until it wrote them. Raises NotReady with the end of its log."""

        def look() -> bool | None:
            if words in self.said():
                return True
            if not self.runs():
                raise NotReady(f"{self.name} ended: {self.said()[-LOG_TAIL_CHARACTERS:]}")
            return None

        try:
            wait_until(look, seconds=READY_SECONDS_MAX, what=f"{self.name} ready")
        except TimeoutError as late:
            raise NotReady(f"{late}: {self.said()[-LOG_TAIL_CHARACTERS:]}") from None

    def members(self) -> list[int]:
        """Every process of its group, the leader first."""
        shown = subprocess.run(
            ["ps", "-e", "-o", "pid=,pgid=,stat="], check=True, capture_output=True, text=True
        ).stdout
        rows = [line.split() for line in shown.splitlines()]
        found = [int(pid) for pid, group, stat in rows if int(group) == self.pid and stat[0] != "Z"]
        return sorted(found, key=lambda pid: (pid != self.pid, pid))

    def kill_one(self, pid: int) -> Killed:
        """SIGKILL one process of the group. Raises ValueError for a pid that is not of it."""
        if pid not in self.members():
            raise ValueError(f"{pid} is not a process of {self.name}")
        os.kill(pid, signal.SIGKILL)
        return {"process": self.name, "pid": pid, "signal": int(signal.SIGKILL)}

    def kill_all(self) -> list[Killed]:
        """SIGKILL the whole group, as an out-of-memory killer or a power cut would."""
        killed = [
            {"process": self.name, "pid": pid, "signal": int(signal.SIGKILL)}
            for pid in self.members()
        ]
        self._signal_group(signal.SIGKILL)
        assert self._running is not None
        self._running.wait()
        return killed

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """SIGSTOP the whole group while the block runs: alive, and doing nothing."""
        self._signal_group(signal.SIGSTOP)
        try:
            yield
        finally:
            self.wake()

    def wake(self) -> None:
        """SIGCONT; does nothing to a program that is awake or gone."""
        if self.runs():
            self._signal_group(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM to the leader alone: a Celery pool is for its parent to end."""
        if self.runs():
            self.wake()
            os.kill(self.pid, signal.SIGTERM)

    def end(self) -> None:
        """Wait for it, and kill whatever is left of its group."""
        if self._running is None:
            return
        try:
            self._running.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._signal_group(signal.SIGKILL)
            self._running.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return  # it ended in this instant, which its owner notices by `runs`
