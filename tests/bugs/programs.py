"""Starting and talking to other programs of the same test (see tests/bugs/program.py)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connection

from tests.bugs.races import until
from tests.provider_process import ROOT

_STOP_SECONDS = 5


def database_url() -> str:
    """The URL of the database that this test runs on."""
    used = connection.settings_dict
    query = {"host": used["HOST"], "port": used["PORT"]}
    given = urlencode({name: value for name, value in query.items() if value})
    password = f":{quote(used['PASSWORD'])}" if used["PASSWORD"] else ""
    return f"postgresql://{quote(used['USER'])}{password}@/{quote(used['NAME'])}?{given}"


def environment(run_dir: Path, **more: str) -> dict[str, str]:
    """The environment of a program that shares this test's database and sandbox."""
    return os.environ | {
        "DATABASE_URL": database_url(),
        "AFTERSEND_RUN_DIR": str(run_dir),
        "AFTERSEND_LOG_LEVEL": "ERROR",
        **more,
    }


class Program:
    """One running `tests.bugs.program`; `tell` and `hear` are the two halves of `ask`."""

    def __init__(self, run_dir: Path, **more: str) -> None:
        self._witness = run_dir / "witness"
        self._running = subprocess.Popen(
            [sys.executable, "-m", "tests.bugs.program"],
            cwd=ROOT,
            env=environment(run_dir, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers_due = 0

    def forget(self) -> None:
        """The next test begins with an empty database, which lost nothing."""
        shutil.rmtree(self._witness, ignore_errors=True)

    @property
    def idle(self) -> bool:
        """Whether it lives and owes no answer."""
        return self._running.poll() is None and self._answers_due == 0

    def until_ready(self) -> None:
        assert self._running.stdout is not None
        said = self._running.stdout.readline().strip()
        assert said == "ready", f"the program did not start; it said {said!r}"

    def tell(self, verb: str, **arguments: Any) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(json.dumps({"verb": verb, **arguments}) + "\n")
        self._running.stdin.flush()
        self._answers_due += 1

    def hear(self) -> dict[str, Any]:
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        assert line, "the program ended without an answer"
        self._answers_due -= 1
        said: dict[str, Any] = json.loads(line)
        return said

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        self.tell(verb, **arguments)
        return self.hear()

    def signal(self, number: signal.Signals) -> None:
        self._running.send_signal(number)

    def until_stopped(self) -> None:
        """Until the kernel shows it as stopped (SIGSTOP)."""
        until(lambda: self._kernel_state() == "T")

    def until_dead(self) -> int:
        """Until it ended by itself; its exit status."""
        return self._running.wait(_STOP_SECONDS)

    def end(self) -> None:
        """End it whatever it does just now."""
        if self._running.poll() is None:
            self._running.kill()
            self._running.wait(_STOP_SECONDS)
        for stream in (self._running.stdin, self._running.stdout):
            if stream is not None and not stream.closed:
                stream.close()

    def _kernel_state(self) -> str:
        stat = Path(f"/proc/{self._running.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0]
