"""The supervisor and its guardian, with small children that stand in for the real ones."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.supervision import ports
from tests.config.conftest import gone, run_python, until

CHOOSE = """
import sys
from config.supervision import ports
print(ports.choose("AFTERSEND_PORT", sys.argv[1]))
"""

DRIVER = """
import sys
from pathlib import Path
from config.embedded import Valkey
from config.supervision.kept import Child
from config.supervision.supervise import AlreadyRunning, StartFailed, Supervisor

run_dir = Path(sys.argv[1])
FAMILY = '''
import os, sys, time
if os.fork() == 0:
    open(sys.argv[1], "a").write(f"{os.getpid()}\\\\n")
time.sleep(600)
'''
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
'''
FAILING = 'print("the disk is full"); raise SystemExit(3)'
children = [
    Child("family", (sys.executable, "-c", FAMILY, str(run_dir / "grandchildren"))),
    Child("stubborn", (sys.executable, "-c", STUBBORN), stop_seconds=0.5),
]
bell = Valkey(run_dir / "demo")
try:
    with Supervisor(
        run_dir, root=Path.cwd(), pid_files=[(bell.pid_file, str(bell.socket))]
    ) as supervisor:
        supervisor.address = "http://localhost:1"
        supervisor.keep_server("valkey", bell, bell.ensure)
        supervisor.keep(children)
        if "fail" in sys.argv:
            supervisor.run("migrate", (sys.executable, "-c", FAILING))
        print("up", flush=True)
        supervisor.watch()
except AlreadyRunning as error:
    print(error)
    sys.exit(2)
except StartFailed as error:
    print(error)
    sys.exit(1)
"""


class Running:
    """A supervisor as a program of its own, and what its processes.json says."""

    def __init__(self, run_dir: Path, *arguments: str) -> None:
        self.run_dir = run_dir
        self.program = run_python(DRIVER, str(run_dir), *arguments)

    def until_up(self) -> Running:
        assert self.program.stdout is not None
        line = self.program.stdout.readline()
        assert line == "up\n", line + self.program.stdout.read()
        return self

    def roster(self) -> dict[str, Any]:
        listed: dict[str, Any] = json.loads((self.run_dir / "processes.json").read_text())
        return listed

    def pid(self, name: str) -> int | None:
        rows = {row["name"]: row["pid"] for row in self.roster()["processes"]}
        pid: int | None = rows[name]
        return pid

    def everybody(self) -> set[int]:
        """Every pid that the roster names, and the grandchildren."""
        listed = {row["pid"] for row in self.roster()["processes"]}
        grandchildren = (self.run_dir / "grandchildren").read_text().split()
        return {pid for pid in listed if pid} | {int(pid) for pid in grandchildren}

    def kill(self, name: str) -> int:
        """SIGKILL one by its name in the roster; its number."""
        pid = self.pid(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return pid

    def until_replaced(self, name: str, old: int) -> int:
        until(lambda: self.pid(name) not in (None, old), seconds=5)
        fresh = self.pid(name)
        assert fresh is not None
        return fresh


@pytest.fixture
def running(place: Path) -> Iterator[Running]:
    run_dir = place / "run"
    started = Running(run_dir)
    yield started.until_up()
    started.program.terminate()
    started.program.communicate(timeout=30)


def test_a_killed_child_comes_back_and_its_family_does_not(running: Running) -> None:
    grandchild = int((running.run_dir / "grandchildren").read_text())

    old = running.kill("family")

    assert running.until_replaced("family", old) != old
    assert gone(grandchild)
    row = next(row for row in running.roster()["processes"] if row["name"] == "family")
    assert row["restarts"] == 1


@pytest.mark.parametrize("name", ["valkey", "guardian"])
def test_a_killed_server_and_a_killed_guardian_come_back(running: Running, name: str) -> None:
    old = running.kill(name)

    assert not gone(running.until_replaced(name, old))


def test_nothing_lives_ten_seconds_after_the_supervisor_was_killed(running: Running) -> None:
    old = running.kill("guardian")
    running.until_replaced("guardian", old)
    everybody = running.everybody()
    assert not any(gone(pid) for pid in everybody - {old})

    running.program.kill()

    until(lambda: all(gone(pid) for pid in everybody), seconds=10)
    until(lambda: not (running.run_dir / "processes.json").exists(), seconds=1)


def test_a_new_start_waits_for_the_guardian_of_a_killed_one(running: Running) -> None:
    everybody = running.everybody()
    running.program.kill()

    again = Running(running.run_dir).until_up()

    assert all(gone(pid) for pid in everybody)
    assert not any(row["pid"] is None for row in again.roster()["processes"])
    again.program.terminate()
    again.program.communicate(timeout=30)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_leaves_nothing_even_of_the_stubborn(running: Running, asked: int) -> None:
    everybody = running.everybody()

    running.program.send_signal(asked)

    assert running.program.wait(timeout=15) == 0
    assert all(gone(pid) for pid in everybody)
    assert not (running.run_dir / "processes.json").exists()


def test_a_second_supervisor_says_who_runs_and_leaves_it_alone(running: Running) -> None:
    second = Running(running.run_dir)
    output, _ = second.program.communicate(timeout=15)

    assert second.program.returncode == 2
    assert "already runs in this checkout at http://localhost:1" in output
    assert f"kill {running.program.pid}" in output
    assert not any(gone(pid) for pid in running.everybody())


def test_a_failing_step_shows_its_output_and_leaves_nothing(place: Path) -> None:
    failing = Running(place / "run", "fail")
    until((place / "run/grandchildren").exists)
    everybody = failing.everybody()
    output, _ = failing.program.communicate(timeout=30)

    assert failing.program.returncode == 1
    assert "migrate ended (3)" in output
    assert "the disk is full" in output
    assert all(gone(pid) for pid in everybody)


def test_a_taken_port_gives_way_to_the_next_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert ports.choose("AFTERSEND_PORT", str(port)) > port


@pytest.mark.parametrize("wanted", ["", "eight", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(wanted: str) -> None:
    with pytest.raises(ports.NoPort, match="AFTERSEND_PORT must be a number"):
        ports.choose("AFTERSEND_PORT", wanted)


def test_two_demos_that_start_at_once_choose_different_ports() -> None:
    """The first has chosen and does not listen yet."""
    wanted = str(ports.choose("AFTERSEND_PORT", "18000"))
    other = run_python(CHOOSE, wanted)
    assert int(other.communicate(timeout=30)[0]) > int(wanted)
