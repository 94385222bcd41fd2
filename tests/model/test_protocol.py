"""The model of the protocol in small: what holds with every rule, and what hurts without one."""

from __future__ import annotations

import pytest

from tests.model.protocol.explore import explore
from tests.model.protocol.rules import ORDERS, WORLDS, Run, in_place, removals
from tests.model.replay.traces import edits_of_traces, replays
from tests.red import edits

# A few thousand states each; `make model` visits all.
_SMALL = ("no keys, no lookup", "no keys, no bound", "from the proposal on", "two lookups at once")
_SHORT = ("claim.conditional", "lease.unknown", "quiet.flight", "hop.listed", "take-back.before")


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
    assert set(edits_of_traces()) <= {each.breaks for each in edits()}


def test_every_kind_of_provider_of_the_table_of_promises_is_a_world() -> None:
    kinds = {(each.keys, each.lookup, each.bounded) for each in WORLDS.values()}
    assert {("none", True, True), ("weak", True, True), ("forever", True, True)} <= kinds
    assert {("window", True, True), ("window", False, True), ("window", True, False)} <= kinds
    assert len(ORDERS) == 4
