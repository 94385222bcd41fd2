"""Starts a worker of the storm: `python -m tests.storm.program BROKEN VERSION NETWORK ...`.

BROKEN names one guard that it runs without, or is `none`. VERSION is `usual`, or `other`: a release
that would write other bytes into a new request and holds its accounts to a contract with other
words. NETWORK is the path of one that it lives in, or `none`. The rest are Celery's arguments. Its
clock may be minutes off, until the storm is over. Only this program is changed, never the product.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.storm.apart import enter

CLOCKS_VARIABLE = "STORM_CLOCKS"
CALM = "calm"
NO_NETWORK = "none"
CHILD_SECONDS_MAX = 60
_OFF_SECONDS = (0, 0, 300, -300)


def main() -> None:
    broken, version, network = (sys.argv.pop(1) for _ in range(3))
    if network != NO_NETWORK:
        enter(network)
    _set_clock()
    import django

    django.setup()
    from tests.storm.plant import be_patient, change_contracts, plant
    from tests.walkthrough.broken import MODES

    if broken != "none":
        MODES[broken]()
    be_patient()
    if version == "other":
        _be_another_version()
        change_contracts(lambda each: {"lookups_burst": each.lookups_burst + 1})
    plant(acks="money" in sys.argv)
    from celery.__main__ import main as celery

    from config.celery import app

    # A machine that is busy with all this starts a child slowly, and is no fault.
    app.conf.worker_proc_alive_timeout = CHILD_SECONDS_MAX
    celery()


def _set_clock() -> None:
    """Five minutes ahead, behind or right, for as long as this process and its children live."""
    if Path(os.environ[CLOCKS_VARIABLE], CALM).exists():
        return
    off_seconds = random.Random(os.getpid()).choice(_OFF_SECONDS)
    if off_seconds:
        import time_machine

        wrong = datetime.now(UTC) + timedelta(seconds=off_seconds)
        time_machine.travel(wrong, tick=True).start()
        print(f"storm: this clock is {off_seconds} s off", flush=True)


def _be_another_version() -> None:
    from refunds.providers import plain

    def written_otherwise(build: Callable[..., bytes]) -> Callable[..., bytes]:
        return lambda *given, **named: build(*given, **named).replace(b":", b": ")

    body: Any = plain.Plain
    body.body = written_otherwise(body.body)


if __name__ == "__main__":
    main()
