"""Real Celery workers of the product, on a broker of the test's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bugs.programs import environment
from tests.bugs.races import until
from tests.config.bell_app import bell_app
from tests.provider_process import ROOT

_LIMITS = '{"send_delay_seconds": 0, "call_total_seconds": 20}'
_STOP_SECONDS = 10
# Starting is not what these tests measure.
_READY_SECONDS = 90


class Workers:
    """Starts workers and reads what they note (see tests/bugs/impatient_queue.py)."""

    def __init__(self, broker_url: str, folder: Path) -> None:
        self.broker_url = broker_url
        self._trace = folder / "trace.jsonl"
        self._trace.touch()
        self._folder = folder

    def ring_send(self, operation_id: object) -> None:
        """Put the message on the queue that says: this operation may be ready."""
        app = bell_app(self.broker_url)
        with app.connection_for_write() as connection:
            app.send_task(
                "refunds.tasks.send", [str(operation_id)], queue="money", connection=connection
            )

    def noted(self, name: str) -> list[dict[str, Any]]:
        """The lines that have this name, oldest first."""
        lines = [json.loads(line) for line in self._trace.read_text().splitlines()]
        return [line for line in lines if name in line]

    @contextmanager
    def working(self, *names: str, **more: str) -> Iterator[list[subprocess.Popen[bytes]]]:
        """One worker of the money queue per name, each a program of its own, once all are ready."""
        running = [self._start(name, more) for name in names]
        try:
            until(lambda: len(self.noted("ready")) == len(names), seconds=_READY_SECONDS)
            yield running
        finally:
            for each in running:
                if each.poll() is None:
                    os.killpg(each.pid, signal.SIGKILL)
                    each.wait(_STOP_SECONDS)

    def _start(self, name: str, more: dict[str, str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", "tests.bugs.impatient_queue", "worker"]
        return subprocess.Popen(
            [*command, "-Q", "money", "-n", name, *("-P", "prefork", "-c", "1")]
            + ["--without-gossip", "--without-mingle", "--loglevel", "ERROR"],
            cwd=ROOT,
            env=environment(
                self._folder / name,
                CELERY_BROKER_URL=self.broker_url,
                AFTERSEND_LIMITS=_LIMITS,
                BUGS_TRACE=str(self._trace),
                **more,
            ),
            start_new_session=True,
        )
