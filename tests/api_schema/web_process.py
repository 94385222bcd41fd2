"""The door as a real process: uvicorn with the ASGI application, on the database of the tests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 180
_POLL_SECONDS = 0.05
# The pace stays on; it is as high as these tests need. A session may not be cut off either, or
# most answers would say the same.
_LIMITS = {"calls_per_minute_max": 1_000_000, "status_calls_max": 1_000_000}


class WebProcess:
    """`uvicorn config.asgi:application` on a free port; its output is kept for a failure."""

    def __init__(self, database: dict[str, Any], *, port: int = 0) -> None:
        """`database` as in Django's settings; `port` to come up again where another was killed."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="door-")
        self._log = Path(self._folder.name, "log")
        command = [sys.executable, "-m", "uvicorn", "config.asgi:application"]
        command += ["--port", str(self.port), "--log-level", "warning", "--no-access-log"]
        own = {"DATABASE_URL": _url(database), "AFTERSEND_LIMITS": json.dumps(_LIMITS)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT
            )

    def wait(self) -> None:
        """Until it listens. Raises AssertionError with its output when it does not."""
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(_POLL_SECONDS)
            else:
                return
        raise AssertionError(f"the door did not open:\n{self.output()}")

    def output(self) -> str:
        """What it has written so far: with this log level, only what went wrong."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL: it ends where it stands, in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it; a second call changes nothing."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def _url(database: dict[str, Any]) -> str:
    person = quote(database["USER"], safe="")
    if database["PASSWORD"]:
        person += f":{quote(database['PASSWORD'], safe='')}"
    host = quote(str(database["HOST"]), safe="")
    name = quote(database["NAME"], safe="")
    return f"postgresql://{person}@/{name}?host={host}&port={database['PORT']}"
