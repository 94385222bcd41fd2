"""The model of the protocol in small: what holds with every rule, and what hurts without one."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.model.protocol.explore import explore
from tests.model.protocol.rules import ORDERS, WORLDS, Run, in_place, removals
from tests.model.replay.traces import FOLDER, edits_of_traces, replays
from tests.provider_process import ROOT
from tests.red import edits

# A few thousand states each; `make model` visits all.
_SMALL = ("no keys, no lookup", "no keys, no bound", "from the proposal on", "two lookups at once")
_SHORT = ("claim.conditional", "lease.unknown", "quiet.flight", "hop.listed", "take-back.before")


def collected(file: str) -> list[str]:
    """The ids of the tests that a run of this file would run, sorted."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", file]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(line for line in said.splitlines() if line.startswith(file))


@pytest.mark.parametrize(
    "run", [r for r in in_place() if r.name in _SMALL], ids=lambda run: run.name
)
def test_with_every_rule_in_place_nothing_is_paid_twice_denied_or_stuck(run: Run) -> None:
    found = explore(run.model)
    assert (found.fault, found.stuck) == ("", ())
    assert found.states > 500


@pytest.mark.parametrize(
    "run",
    [r for r in removals() if r.off in _SHORT or r.part in ("order", "notices")],
    ids=lambda run: f"{run.part}-{run.off}-{run.name}",
)
def test_without_one_of_the_rules_something_goes_wrong(run: Run) -> None:
    found = explore(run.model)
    assert found.fault
    assert len(found.way) > 1


def test_every_trace_has_a_name_of_its_own_and_names_guards_that_exist() -> None:
    names = [name for name, _ in replays()]
    assert len(names) == len(set(names)) == 217
    named = {name for guards in edits_of_traces() for name in guards}
    assert named <= {each.breaks for each in edits()}


def test_no_trace_is_left_out_by_the_list_or_by_the_suite() -> None:
    wanted = [test for _, test in replays()]
    stored = sum(
        len(tomllib.loads(path.read_text())["trace"]) for path in sorted(FOLDER.glob("*.toml"))
    )
    assert len(wanted) == stored
    assert collected("tests/model/test_replays.py") == sorted(wanted)


def test_every_kind_of_provider_of_the_table_of_promises_is_a_world() -> None:
    kinds = {(each.keys, each.lookup, each.bounded) for each in WORLDS.values()}
    assert {("none", True, True), ("weak", True, True), ("forever", True, True)} <= kinds
    assert {("window", True, True), ("window", False, True), ("window", True, False)} <= kinds
    assert len(ORDERS) == 4
