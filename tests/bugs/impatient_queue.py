"""The product's own Celery application on a broker that soon takes a message for lost.

`celery -A tests.bugs.impatient_queue worker`. BUGS_TRACE names the file that gets one JSON line
when the worker is ready, whenever a task is taken and whenever it is done. With
BUGS_DIE_ON_TAKING the whole worker kills itself as soon as it has taken a message, before any
code of the task runs.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_ready

from config.celery import app

VISIBILITY_SECONDS = 1

app.conf.broker_transport_options |= {
    "visibility_timeout": VISIBILITY_SECONDS,
    "unacked_restore_interval": 0.2,
}


def _note(**line: Any) -> None:
    with Path(os.environ["BUGS_TRACE"]).open("a") as trace:
        trace.write(json.dumps({"pid": os.getpid(), **line}) + "\n")


@worker_ready.connect
def _ready(**_: Any) -> None:
    _note(ready=True)


@task_prerun.connect
def _taken(task: Any, **_: Any) -> None:
    _note(taken=task.name)
    if "BUGS_DIE_ON_TAKING" in os.environ:
        os.killpg(os.getpgrp(), signal.SIGKILL)


@task_postrun.connect
def _done(task: Any, retval: Any, **_: Any) -> None:
    _note(done=task.name, result=str(retval))
