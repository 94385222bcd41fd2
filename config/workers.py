"""The workers and the beat of one machine as one command: imported once, then forked.

    python -m config.workers
    python -m config.workers --program "money worker -Q money -P threads -c 16" --program ...

Each program is a process of its own, with Celery's own command line, signal handling, connections
and clients; what all of them have imported lies in memory once, and nothing that only pages need is
imported (`worker_settings`). A program that ends is started
again. SIGTERM and Ctrl-C pass on as SIGTERM, Celery's warm shutdown; a second one ends everything
at once. Ends with 0 after a stop, 1 when a program did not come up, 2 for unusable input.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from config.supervision.kept import KeptProgram
from config.supervision.signals import STOPPING, Signals

USUAL: Final = (
    "money worker -Q money -n money@%h -P prefork -c 4",
    "lookups worker -Q lookups -n lookups@%h -P threads -c 16",
    "beat beat",
)
STOP_SECONDS: Final = 45  # a call to a provider may take 30 s, and its answer wants storing
PROVEN_SECONDS: Final = 5.0  # who ends sooner after the first start is not configured rightly
LOOK_SECONDS: Final = 0.2
# glibc's names, from malloc.h and sys/prctl.h.
_M_ARENA_MAX: Final = -8
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15


@dataclass(frozen=True, slots=True)
class Program:
    """One child: `name` is what `ps -o comm` shows of it, at most 15 bytes."""

    name: str
    arguments: tuple[str, ...]


def read(told: str) -> Program:
    """A name and a command line of Celery's. Raises ValueError for anything else."""
    name, *arguments = shlex.split(told) or [""]
    if arguments[:1] not in (["worker"], ["beat"]) or len(name.encode()) > 15:
        raise ValueError(f"{told!r} is not a name and then `worker …` or `beat …`")
    return Program(name, tuple(arguments))


def celery(program: Program) -> None:
    """What a child does: Celery's own command. The whole of its command line, whose shell brings a
    library for terminals, stays outside."""
    from celery.bin.base import CLIContext
    from celery.bin.beat import beat
    from celery.bin.worker import worker

    from config.celery import app

    command = {"worker": worker, "beat": beat}[program.arguments[0]]
    told = CLIContext(app=app, no_color=True, workdir=None)
    command.main(args=list(program.arguments[1:]), prog_name=f"celery {command.name}", obj=told)


def load() -> None:
    """Import what the programs need, and nothing that a child may not share.

    No connection is opened and no thread started: a child makes its own.
    """
    libc = ctypes.CDLL(None)
    # Each thread's own arena would keep what one task needed once.
    libc.mallopt(_M_ARENA_MAX, 2)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.worker_settings"
    import celery.apps.beat
    import celery.apps.worker
    import celery.bin.beat
    import celery.bin.worker
    import celery.concurrency.prefork
    import celery.concurrency.thread
    import celery.events.dispatcher
    import celery.events.receiver
    import celery.worker.autoscale
    import celery.worker.components
    import celery.worker.consumer
    import celery.worker.consumer.delayed_delivery
    import celery.worker.strategy  # noqa: F401 - the last of them binds the name
    import httpcore  # noqa: F401 - httpx imports it when the first call is made

    from config.celery import app

    app.loader.import_default_modules()
    app.finalize()
    # Celery would import these at a worker's start, once in each.
    _ = (app.log, app.amqp.queues, app.control, app.events, app.backend, app.conf.humanize())
    _ = app.connection_for_read().transport_cls
    assert threading.active_count() == 1, "nothing may run that a child would lack"
    gc.collect()
    libc.malloc_trim(0)  # what importing needed once
    gc.freeze()  # what is collected is written to, and would be shared no longer


class _Forked:
    """A child as `KeptProgram` knows it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> int:
        """Its exit status, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def run(programs: Sequence[Program], start: Callable[[Program], None] = celery) -> int:
    """Keep the programs until somebody asks to stop. `load` comes first; `start` runs in a child."""
    kept = [KeptProgram(each.name, partial(_fork, each, start)) for each in programs]
    with Signals() as signals:
        for each in kept:
            each.start()
        failed = ""
        while not (signals.stop_asked or failed):
            signals.wait(LOOK_SECONDS)
            for each in kept:
                if _never_came_up(each):
                    failed = each.name
                elif said := each.look_after():
                    print(said, flush=True)
        _stop(kept, signals)
    if failed:
        print(f"{failed} ended at its start; what it said stands above.", file=sys.stderr)
    return 1 if failed else 0


def _never_came_up(program: KeptProgram) -> bool:
    """Ended by itself, soon after its first start: it would do so again. A kill says nothing."""
    if program.restarts or program.pid is None or program.lived_seconds() > PROVEN_SECONDS:
        return False
    ended = os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return ended is not None and ended.si_code == os.CLD_EXITED


def _stop(kept: Sequence[KeptProgram], signals: Signals) -> None:
    for each in kept:
        each.ask_to_stop(STOP_SECONDS)
    left = list(kept)
    while left:
        for each in list(left):
            if each.has_ended() or each.is_overdue() or signals.hurry_asked:
                each.end_group()
                left.remove(each)
        if left:
            signals.wait(LOOK_SECONDS)


def _fork(program: Program, start: Callable[[Program], None]) -> _Forked:
    assert threading.active_count() == 1, "a fork keeps one thread"
    sys.stdout.flush()
    launcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be(program, start, launcher)
    os.setpgid(pid, pid)  # here and in the child: whoever comes first
    return _Forked(pid)


def _be(program: Program, start: Callable[[Program], None], launcher: int) -> NoReturn:
    """The child's whole life: nothing of the launcher's own may run in it afterwards."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for one in (*STOPPING, signal.SIGCHLD):
            signal.signal(one, signal.SIG_DFL)
        os.setpgid(0, 0)
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_NAME, program.name.encode())
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # a killed launcher leaves nobody behind
        if os.getppid() == launcher:
            start(program)
            status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m config.workers", description=__doc__)
    parser.add_argument(
        "--program",
        action="append",
        metavar="NAME CELERY-COMMAND",
        help="a name and Celery's own words for it; may be given again",
    )
    given = parser.parse_args(words).program
    try:
        programs = [read(told) for told in given or USUAL]
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    load()
    return run(programs)


if __name__ == "__main__":
    sys.exit(main())
