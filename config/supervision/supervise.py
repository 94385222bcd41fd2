"""A set of programs and servers that live and end together."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from config.liveness import command_line
from config.supervision import ports, roster
from config.supervision.guardian import MARK_VARIABLE
from config.supervision.kept import Child, Kept, KeptProgram, KeptServer, Server, launcher
from config.supervision.signals import Signals

LOOK_SECONDS = 0.2
READY_SECONDS_MAX = 180
PROVEN_SECONDS = 2.0  # a child without a port counts as up after that
EARLIER_RUN_SECONDS_MAX = 15
GUARDIAN_SECONDS_MAX = 15
OUTPUT_TAIL_CHARACTERS = 4000


class AlreadyRunning(RuntimeError):
    """Another supervisor has this run dir; the text says which and how to end it."""


class StartFailed(RuntimeError):
    """A step or a child did not come up; the text ends with what it wrote."""


class Stopped(Exception):
    """Somebody asked to stop before everything was up."""


class Supervisor:
    """While the block runs, what was started stays alive; after it, nothing of it is left.

    That holds for a SIGKILL too: a guardian of its own session ends the rest within 10 s.
    """

    def __init__(
        self, run_dir: Path, *, root: Path, pid_files: Iterable[tuple[Path, str]] = ()
    ) -> None:
        """`pid_files`: of the servers that may be kept, each with a word of its command line."""
        self.run_dir = run_dir
        self.address = self.sandbox = ""
        self.environment = dict(os.environ)
        self._root = root
        self._token = secrets.token_hex(16)
        self._programs: list[tuple[Child, KeptProgram]] = []
        self._servers: list[KeptServer] = []
        self._pid_files = list(pid_files)
        self._blocks = ExitStack()

    def __enter__(self) -> Self:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        (self.run_dir / "logs").mkdir(mode=0o700, exist_ok=True)
        self._lock = _take_lock(self.run_dir)
        self._signals = self._blocks.enter_context(Signals())
        self._pipe_read_end, self._pipe_write_end = os.pipe()
        self._guardian = KeptProgram("guardian", self._launch_guardian)
        self._guardian.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._blocks:
            try:
                self._stop_all()
            finally:  # whatever went wrong above, the guardian ends the rest
                os.close(self._pipe_write_end)
                os.close(self._pipe_read_end)
                self._guardian.wait(GUARDIAN_SECONDS_MAX)
                roster.remove(self.run_dir)
                os.close(self._lock)

    def keep_server(self, name: str, server: Server, ensure: Callable[[], object]) -> None:
        """Start a server and recover it whenever it is gone."""
        kept = KeptServer(name, server, ensure)
        kept.start()
        self._servers.append(kept)
        self._write_roster()

    def keep(self, children: Iterable[Child]) -> None:
        """Start children and start them again whenever they end; returns when all are up."""
        fresh = []
        for child in children:
            program = KeptProgram(child.name, self._launcher(child.name, child.command))
            program.start()
            fresh.append((child, program))
            self._programs.append((child, program))
        self._write_roster()
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not all(_is_up(child, program) for child, program in fresh):
            self._pause()
            if time.monotonic() > deadline:
                late = [child.name for child, program in fresh if not _is_up(child, program)]
                raise StartFailed(f"not up within {READY_SECONDS_MAX} s: {self._tails(late)}")

    def run(self, name: str, command: tuple[str, ...], *, shown: bool = False) -> None:
        """One step, to its end. `shown`: it speaks to the terminal instead of its log."""
        if shown:
            step = subprocess.Popen(
                command,
                cwd=self._root,
                env=self._child_environment(),
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        else:
            step = self._launcher(name, command)()
        program = KeptProgram(name, lambda: step)
        program.start()
        try:
            while not program.has_ended():
                self._pause()
        finally:
            how = program.end_group()
        if step.returncode != 0:
            raise StartFailed(f"{name} {how}" + ("" if shown else f": {self._tails([name])}"))

    def watch(self) -> None:
        """Look after everything until somebody asks to stop."""
        while not self._signals.stop_asked:
            self._look_after_all()
            self._signals.wait(LOOK_SECONDS)

    def _look_after_all(self) -> None:
        news = [sentence for one in self._kept() if (sentence := one.look_after())]
        for sentence in news:
            print(sentence, flush=True)
        if news:
            self._write_roster()

    def _pause(self) -> None:
        """Wait a little during start-up, where a death is a failure and not an accident."""
        self._signals.wait(LOOK_SECONDS / 4)
        if self._signals.stop_asked:
            raise Stopped
        dead = [child.name for child, program in self._programs if program.has_ended()]
        if dead:
            raise StartFailed(f"ended at start: {self._tails(dead)}")

    def _stop_all(self) -> None:
        last = [pair for pair in self._programs if pair[0].stops_last]
        self._stop([pair for pair in self._programs if not pair[0].stops_last])
        self._stop(last)
        for server in self._servers:
            server.stop()

    def _stop(self, programs: list[tuple[Child, KeptProgram]]) -> None:
        for child, program in programs:
            program.ask_to_stop(child.stop_seconds)
        left = [program for _, program in programs]
        while left:
            for program in list(left):
                if program.has_ended() or program.is_overdue() or self._signals.hurry_asked:
                    program.end_group()
                    left.remove(program)
            if left:
                self._signals.wait(LOOK_SECONDS / 4)

    def _launcher(
        self, name: str, command: tuple[str, ...]
    ) -> Callable[[], subprocess.Popen[bytes]]:
        log = self.run_dir / "logs" / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        environment = self._child_environment()
        return launcher(command, folder=self._root, environment=environment, log=log)

    def _child_environment(self) -> dict[str, str]:
        return self.environment | {MARK_VARIABLE: self._token}

    def _launch_guardian(self) -> subprocess.Popen[bytes]:
        servers = [text for file, word in self._pid_files for text in (str(file), word)]
        module = "config.supervision.guardian"
        with (self.run_dir / "logs" / "guardian.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, self._token, str(self.run_dir), *servers],
                cwd=self._root,
                stdin=self._pipe_read_end,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[self._lock],  # the run dir is taken until the guardian is through
            )

    def _kept(self) -> list[Kept]:
        return [*self._servers, *(program for _, program in self._programs), self._guardian]

    def _write_roster(self) -> None:
        rows = [one.row() for one in self._kept()]
        roster.write(self.run_dir, address=self.address, sandbox=self.sandbox, rows=rows)

    def _tails(self, names: list[str]) -> str:
        texts = []
        for name in names:
            log = self.run_dir / "logs" / f"{name}.log"
            text = log.read_text(errors="replace")[-OUTPUT_TAIL_CHARACTERS:]
            texts.append(f"{name}, from {log}:\n{text}")
        return "\n".join(texts)


def _is_up(child: Child, program: KeptProgram) -> bool:
    if child.port is None:
        return program.lived_seconds() > PROVEN_SECONDS
    return ports.accepts(child.port)


def _take_lock(run_dir: Path) -> int:
    """A descriptor that holds the run dir for us and, after us, for the guardian."""
    lock = os.open(run_dir / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + EARLIER_RUN_SECONDS_MAX
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = int(os.pread(lock, 20, 0) or b"0")
            if command_line(number) is not None or time.monotonic() > deadline:
                os.close(lock)
                raise AlreadyRunning(
                    f"Aftersend already runs in this checkout{_where(run_dir)}. Stop it with "
                    f"Ctrl-C in its terminal, or with `kill {number}`."
                ) from None
            time.sleep(LOOK_SECONDS)  # the guardian of a killed run is still tidying up
        else:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            return lock


def _where(run_dir: Path) -> str:
    try:
        return f" at {json.loads((run_dir / roster.FILE_NAME).read_text())['address']}"
    except FileNotFoundError:
        return " and is just starting or ending"
