"""What shows an accepted figure to be false: late by it, or although its absence was concluded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.lateness import proved_false
from reconciliation.matching import Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import Accepted
from tests.unit.deciding import ABSENT, LIMITS, MAIN, at, attempt, shown, view

# The last possible write is a second after noon, and clocks may be ten seconds apart.
FLIGHT = Accepted(1, "flight_max", 30, "resend")
LAG = Accepted(2, "lookup_lag", 30, "absence")
TWICE = Finding(verdict=Verdict.DUPLICATE, because="two")


def found(finding: Finding, *, state: str = states.UNKNOWN, **changes: Any) -> dict[int, str]:
    return proved_false(view(state, **changes), finding, MAIN, (FLIGHT, LAG), LIMITS)


@pytest.mark.parametrize(("created", "false"), [(41.0, []), (41.5, [1])])
def test_an_execution_is_late_beyond_the_figure_and_both_clocks(
    created: float, false: list[int]
) -> None:
    assert list(found(shown(created_at=at(created)))) == false


def test_why_says_by_how_much() -> None:
    [why] = found(shown(created_at=at(111))).values()
    assert why == "It was executed 100 s after the last possible write, later than 30 s."


@pytest.mark.parametrize(
    ("created", "false"), [(2 + 1 + 10 + 30, []), (2 + 1 + 10 + 31, [1])], ids=["in time", "late"]
)
def test_a_sender_that_may_still_write_counts_until_its_deadline_and_the_idle_time(
    created: float, false: list[int]
) -> None:
    silent = (attempt(1), attempt(2, None))
    seen = view(states.UNKNOWN, *silent)
    assert list(proved_false(seen, shown(created_at=at(created)), MAIN, (FLIGHT,), LIMITS)) == false
    unknown_idle = MAIN.with_changes(idle_close=replace(MAIN.idle_close, seconds=None))
    # Where nobody knows when an idle connection is closed, nothing is added to the deadline.
    sooner = shown(created_at=at(created - 1))
    assert list(proved_false(seen, sooner, unknown_idle, (FLIGHT,), LIMITS)) == false


@pytest.mark.parametrize(
    ("state", "said_no"),
    [
        *((each, True) for each in (states.FAILED, states.AUTHORIZED, states.AWAITING_APPROVAL)),
        (states.WITHDRAWN, True),
        *((each, False) for each in (states.UNKNOWN, states.PENDING, states.SUCCEEDED)),
    ],
)
def test_money_that_moved_although_we_said_no_proves_what_that_rested_on_false(
    state: str, said_no: bool
) -> None:
    moved = shown(created_at=at(2))
    assert list(found(moved, state=state, rested_on=frozenset({2}))) == ([2] if said_no else [])
    assert found(moved, state=state) == {}
    assert list(found(shown(created_at=at(900)), state=state)) == [1]  # late, whatever we had said
    assert found(shown("failed", created_at=at(2)), state=state, rested_on=frozenset({2})) == {}


def test_a_second_refund_proves_false_only_what_was_rested_on() -> None:
    assert found(TWICE, rested_on=frozenset({1, 7})) == {1: "More than one refund was made of it."}
    assert found(TWICE) == {}


@pytest.mark.parametrize(
    "finding",
    [
        ABSENT,
        replace(shown(created_at=at(900)), verdict=Verdict.DIFFERS),
        replace(shown(created_at=at(900)), record=None),
        shown(created_at=None),
    ],
    ids=["absent", "differs", "no record", "no instant"],
)
def test_what_does_not_say_when_it_was_executed_proves_nothing(finding: Finding) -> None:
    assert found(finding, state=states.FAILED) == {}


def test_without_an_attempt_of_ours_nothing_is_late() -> None:
    seen = replace(view(), attempts=())
    late = shown(created_at=at(900))
    assert proved_false(seen, late, MAIN, (FLIGHT,), LIMITS) == {}
