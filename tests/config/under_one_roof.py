"""Programs under `config.workers` that only say who they are: a line of JSON at each start.

Words: a name for each; one called `short` ends at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from config import workers

# What draws pages, signs people in, or speaks to a terminal.
OF_PAGES = {"allauth", "ninja", "django_htmx", "whitenoise", "prompt_toolkit", "requests"}


def said(program: workers.Program) -> None:
    from uuid_utils.compat import uuid7

    from config.celery import app

    told = {
        "name": program.name,
        "pid": os.getpid(),
        "threads": threading.active_count(),
        "tasks": len(app.tasks),
        "pages": sorted({name.partition(".")[0] for name in sys.modules} & OF_PAGES),
        "sockets": [
            shown
            for each in os.listdir("/proc/self/fd")
            if (shown := _shown(each)).startswith("socket:")
        ],
        "ids": [str(uuid7()) for _ in range(3)],
    }
    # One write: the others speak at the same time.
    os.write(1, json.dumps(told).encode() + b"\n")
    if program.name != "short":
        signal.pause()


def _shown(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:  # the one that lists
        return ""


if __name__ == "__main__":
    workers.load()
    sys.exit(workers.run([workers.Program(name, ("worker",)) for name in sys.argv[1:]], said))
