"""Programs under one roof: one import, own connections and ids, started again, ended together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from config import workers
from config.liveness import command_line
from tests.bench.machine import tree
from tests.provider_process import ROOT
from tests.walkthrough.programs import wait_until

PATIENCE_SECONDS = 120


@contextmanager
def roof(*names: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.config.under_one_roof", *names],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with running:
        try:
            yield running
        finally:
            running.kill()


def heard(running: subprocess.Popen[str]) -> dict[str, Any]:
    """The next program that says who it is."""
    assert running.stdout is not None
    for line in running.stdout:
        # Unbuffered, the launcher's words and the end of their line are two writes: between them
        # a program may speak.
        _, brace, rest = line.partition("{")
        if brace:
            told: dict[str, Any] = json.loads(brace + rest)
            return told
    raise AssertionError("no program said who it is")


def test_programs_share_what_is_imported_and_neither_thread_nor_socket_nor_id() -> None:
    with roof("one", "two") as running:
        told = [heard(running), heard(running)]
        assert {each["name"] for each in told} == {"one", "two"}
        for each in told:
            assert each["threads"] == 1
            assert each["sockets"] == []
            assert each["tasks"] > 20
            assert each["pages"] == []
            assert each["pid"] in tree(running.pid)
        assert len({*told[0]["ids"], *told[1]["ids"]}) == 6


def test_a_program_that_is_killed_runs_again_while_the_others_go_on() -> None:
    with roof("one", "two") as running:
        pids = {each["name"]: each["pid"] for each in (heard(running), heard(running))}
        os.kill(pids["one"], signal.SIGKILL)
        again = heard(running)
        assert again["name"] == "one"
        assert again["pid"] != pids["one"]
        assert command_line(pids["two"]) is not None
        running.terminate()
        assert running.wait(PATIENCE_SECONDS) == 0
        assert command_line(pids["two"]) is None
        assert command_line(again["pid"]) is None


def test_a_program_that_ends_at_its_start_ends_the_whole() -> None:
    with roof("one", "short") as running:
        said, _ = running.communicate(timeout=PATIENCE_SECONDS)
        assert running.returncode == 1
        assert "short ended at its start" in said


def test_a_killed_launcher_leaves_nobody_behind() -> None:
    with roof("one", "two") as running:
        pids = [heard(running)["pid"], heard(running)["pid"]]
        running.kill()
        wait_until(
            lambda: [command_line(pid) for pid in pids] == [None, None], what="the programs' end"
        )


@pytest.mark.parametrize(
    "told", ["", "money", "money shell", "a-name-that-is-too-long worker", "money 'worker"]
)
def test_what_is_no_program_is_refused(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert workers.main(["--program", told]) == 2
    assert capsys.readouterr().err
