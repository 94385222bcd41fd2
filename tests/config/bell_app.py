"""The smallest Celery application with our broker settings; `ring` leaves a trace in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import celery

from config import broker
from tests.config.conftest import ROOT


def bell_app(url: str) -> celery.Celery:
    """For the worker and for the callers of a test."""
    app = celery.Celery("bell", set_as_current=False, broker=url)
    app.conf.update(task_queues=broker.queues(), **broker.settings_for(url))
    return app


app = bell_app(os.environ.get("BELL_BROKER_URL", "amqp://"))


@app.task(name="ring")
def ring(path: str) -> None:
    """Append the worker's pid."""
    with Path(path).open("a") as trace:
        trace.write(f"{os.getpid()}\n")


@contextmanager
def worker(url: str, queue: str) -> Iterator[None]:
    """A real worker as a program of its own, on one queue."""
    command = [sys.executable, "-m", "celery", "-A", "tests.config.bell_app", "worker"]
    environment = {key: value for key, value in os.environ.items() if "DJANGO" not in key}
    running = subprocess.Popen(
        [*command, "-Q", queue, "-P", "solo", "--without-gossip", "--without-mingle"],
        cwd=ROOT,
        env=environment | {"BELL_BROKER_URL": url},
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
