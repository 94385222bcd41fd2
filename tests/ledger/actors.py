"""Ordering actors about: the test's end of `tests/ledger/actor.py`."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connection

from refunds.ledger import siblings_of
from refunds.models import Operation

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_SECONDS = 60
# A busy machine is not what these tests are about; where time is, they say so.
PATIENT = {"send_deadline_seconds": 15, "call_total_seconds": 30}


def database_url() -> str:
    """The test database as a URL, whichever server it is on."""
    given = connection.settings_dict
    host = quote(str(given["HOST"]), safe="")
    login = quote(given["USER"]) + (f":{quote(given['PASSWORD'])}" if given["PASSWORD"] else "")
    return f"postgresql://{login}@/{given['NAME']}?host={host}&port={given['PORT'] or 5432}"


@dataclass
class Actor:
    """One process. It stands at its gate until `go`."""

    troupe: Troupe
    pid: int
    fifo: str
    heard: list[dict[str, Any]] = field(default_factory=list)

    def reaches(self, name: str) -> None:
        """Wait until it stands at this gate; fails when it ends first."""
        self.troupe.hear(lambda: any(line.get("at") == name for line in self.heard), self, name)

    def go(self) -> None:
        """Let it through the gate at which it stands."""
        with open(self.fifo, "wb", buffering=0) as gate:
            gate.write(b"!")

    def result(self) -> dict[str, str]:
        """What each operation came to, by id: a word, a refusal's code or an exception's name."""
        self.troupe.hear(lambda: bool(self.said()), self, "the end")
        return self.said()

    def said(self) -> dict[str, str]:
        return {pk: word for line in self.heard for pk, word in line.get("said", [])}

    def finish(self) -> dict[str, str]:
        self.go()
        return self.result()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        give_up_at = time.monotonic() + DEADLINE_SECONDS
        while _lives(self.pid):
            assert time.monotonic() < give_up_at, f"{self.pid} does not die"
            time.sleep(0.002)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Troupe:
    """The process that forks actors, and their common voice."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="actors-")
        self.witness = Path(self._folder.name, "witness")
        self._actors: dict[int, Actor] = {}
        self._born: list[int] = []
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.actor"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": database_url()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def actor(
        self,
        verb: str,
        operations: Iterable[Operation],
        *,
        person: str = "",
        stop_at: str = "",
        host: str = "",
        limits: dict[str, Any] | None = None,
        environ: dict[str, str] | None = None,
        lock_timeout_ms: int = 20_000,
    ) -> Actor:
        """A new actor, standing at its first gate.

        `operations` as they are on screen now; `host` is a directory with another socket of the
        database; `limits` are the engine's constants for this actor.
        """
        on = [
            [str(each.pk), Operation.objects.values_list(_shown(verb), flat=True).get(pk=each.pk)]
            for each in operations
        ]
        fifo = str(Path(self._folder.name, f"gate-{len(self._actors)}-{time.monotonic_ns()}"))
        os.mkfifo(fifo)
        order = {
            "verb": verb,
            "on": on,
            "siblings": {
                str(each.pk): [
                    (str(other.operation_id), other.amount_minor) for other in siblings_of(each)
                ]
                for each in operations
            }
            if verb == "approve"
            else {},
            "person": person,
            "stop_at": stop_at,
            "host": host,
            "limits": PATIENT | (limits or {}),
            "environ": environ or {},
            "lock_timeout_ms": lock_timeout_ms,
            "fifo": fifo,
            "witness": str(self.witness),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._born.clear()
        self.hear(lambda: bool(self._born), None, "its birth")
        actor = self._actors.setdefault(self._born[0], Actor(self, self._born[0], fifo))
        actor.fifo = fifo
        actor.reaches("ready")
        return actor

    def hear(self, enough: Any, actor: Actor | None, what: str) -> None:
        """Read lines until `enough()`; fails after a deadline, saying what was waited for."""
        give_up_at = time.monotonic() + DEADLINE_SECONDS
        while not enough():
            gone = actor is not None and not _lives(actor.pid)
            left = give_up_at - time.monotonic()
            self._listen(min(max(left, 0), 0.5))
            heard = actor.heard if actor else self._born
            assert enough() or not gone, f"it died before {what}; heard {heard}, its error is above"
            assert enough() or left > 0, f"waited for {what}; heard {heard}"
            assert self._process.poll() is None, "the troupe has died; its error is above"

    def _listen(self, seconds: float) -> None:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return
        *lines, self._rest = (self._rest + os.read(self._process.stdout.fileno(), 65536)).split(
            b"\n"
        )
        for line in map(json.loads, lines):
            if "born" in line:
                self._born.append(line["born"])
                continue
            known = self._actors.setdefault(line["pid"], Actor(self, line["pid"], ""))
            known.heard.append(line)

    def dismiss(self) -> None:
        """Kill whoever still stands somewhere."""
        for actor in self._actors.values():
            actor.kill()
        self._actors.clear()
        # The next test begins with an empty database, which lost nothing.
        shutil.rmtree(self.witness, ignore_errors=True)

    def end(self) -> None:
        self.dismiss()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._folder.cleanup()


def _shown(verb: str) -> str:
    return "order__version" if verb == "approve" else "version"
