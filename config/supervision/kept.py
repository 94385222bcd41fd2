"""One kept thing: a program of our own, or an embedded server, and how it comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from config.supervision.roster import Row

FIRST_DELAY_SECONDS = 0.2
DELAY_SECONDS_MAX = 5.0
STEADY_SECONDS = 30.0  # who lived that long starts again without delay
GROUP_GONE_SECONDS_MAX = 1.0


@dataclass(frozen=True)
class Child:
    """A program to keep. `port`: it is up when that accepts. `stop_seconds`: then it is killed."""

    name: str
    command: tuple[str, ...]
    port: int | None = None
    stop_seconds: float = 5
    stops_last: bool = False


class Kept(Protocol):
    """What the supervisor looks after."""

    def look_after(self) -> str | None: ...
    def row(self) -> Row: ...


class Running(Protocol):
    """A child as it was started, which leads a process group of its own."""

    @property
    def pid(self) -> int: ...
    def terminate(self) -> None: ...
    def wait(self) -> int: ...


class KeptProgram:
    """A child in a process group of its own; its whole group goes before it starts again."""

    def __init__(self, name: str, launch: Callable[[], Running]) -> None:
        self.name = name
        self.restarts = -1
        self._launch = launch
        self._running: Running | None = None
        self._started = 0.0
        self._delay_seconds = FIRST_DELAY_SECONDS
        self._due = 0.0
        self._stop_by = float("inf")

    def start(self) -> None:
        """Launch it now."""
        self._running = self._launch()
        self._started = time.monotonic()
        self.started_at = now_text()
        self.restarts += 1

    @property
    def pid(self) -> int | None:
        """None between a death and the next start."""
        return self._running.pid if self._running else None

    def row(self) -> Row:
        """What the roster says of it."""
        return Row(self.name, self.pid, self.started_at if self.pid else None, self.restarts)

    def lived_seconds(self) -> float:
        """How long the present one runs."""
        return time.monotonic() - self._started

    def has_ended(self) -> bool:
        """Ended, but not yet reaped: its number, and so its group, is still its own."""
        if self._running is None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._running.pid, flags) is not None

    def look_after(self) -> str | None:
        """Bring it back when it died; a sentence when something happened."""
        if self._running is not None:
            if not self.has_ended():
                return None
            return f"{self.name} {self._bury()}; starting it again"
        if time.monotonic() < self._due:
            return None
        self.start()
        return f"{self.name} runs again, pid {self.pid}"

    def ask_to_stop(self, seconds: float) -> None:
        """Send SIGTERM to the leader alone: a Celery pool is for its parent to end."""
        if self._running is not None and not self.has_ended():
            self._running.terminate()
        self._stop_by = time.monotonic() + seconds

    def is_overdue(self) -> bool:
        """Asked to stop, and had its time."""
        return time.monotonic() > self._stop_by

    def wait(self, seconds: float) -> None:
        """Until it ended by itself; kill it after that."""
        self._stop_by = time.monotonic() + seconds
        while not self.has_ended() and not self.is_overdue():
            time.sleep(0.02)
        self.end_group()

    def end_group(self) -> str:
        """Kill whatever is left of its group and reap it; how the leader ended."""
        if self._running is None:
            return "was not running"
        leader = self._running
        _kill_group(leader.pid)
        status = leader.wait()
        self._running = None
        deadline = time.monotonic() + GROUP_GONE_SECONDS_MAX
        while _group_exists(leader.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended ({status})"

    def _bury(self) -> str:
        if self.lived_seconds() > STEADY_SECONDS:
            self._delay_seconds = FIRST_DELAY_SECONDS
        how = self.end_group()
        self._due = time.monotonic() + self._delay_seconds
        self._delay_seconds = min(self._delay_seconds * 2, DELAY_SECONDS_MAX)
        return how


class Server(Protocol):
    """What the supervisor needs of an embedded server."""

    def pid(self) -> int | None: ...
    def stop(self) -> None: ...


class KeptServer:
    """A server that outlives us by itself; recovery may take seconds, so a thread does it."""

    def __init__(self, name: str, server: Server, ensure: Callable[[], object]) -> None:
        self.name = name
        self.restarts = 0
        self._server = server
        self._ensure = ensure
        self._revival: threading.Thread | None = None
        self._trouble: str | None = None

    def start(self) -> None:
        """Start or find it; returns when it answers."""
        self._ensure()
        self.pid = self._server.pid()
        self.started_at = now_text()

    def row(self) -> Row:
        """What the roster says of it."""
        return Row(self.name, self.pid, self.started_at if self.pid else None, self.restarts)

    def look_after(self) -> str | None:
        """Bring it back when it died; a sentence when something happened."""
        if self._revival is not None:
            return None if self._revival.is_alive() else self._after_revival()
        if self.pid is not None and self._server.pid() == self.pid:
            return None
        self.pid = None
        self._revival = threading.Thread(target=self._revive)
        self._revival.start()
        return f"{self.name} is gone; recovering it"

    def stop(self) -> None:
        """End it, in good order."""
        if self._revival is not None:
            self._revival.join()
        self._server.stop()

    def _revive(self) -> None:
        try:
            self._ensure()
        except RuntimeError as error:  # told by the main thread, and tried again at the next look
            self._trouble = str(error)

    def _after_revival(self) -> str:
        self._revival = None
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            return f"{self.name} did not come back: {trouble}"
        self.pid = self._server.pid()
        self.started_at = now_text()
        self.restarts += 1
        return f"{self.name} runs again, pid {self.pid}"


def now_text() -> str:
    """UTC, whole milliseconds, with zone."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def launcher(
    command: tuple[str, ...], *, folder: Path, environment: dict[str, str], log: Path
) -> Callable[[], subprocess.Popen[bytes]]:
    """A program of its own group that writes to `log` and reads nothing."""

    def launch() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    return launch


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _group_exists(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
