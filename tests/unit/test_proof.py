"""What proves that nothing was paid, and what makes one more send safe: each bar by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.known import LookUpAgain, View
from reconciliation.matching import Finding, Verdict
from reconciliation.patience import look_again
from reconciliation.proof import (
    absence,
    may_resend,
    not_executed,
    others_explained,
    quiet_end,
    shows_all_there_is,
)
from refunds.domain import states
from refunds.domain.contract import Fact, ProviderContract
from tests.unit.deciding import ABSENT, LIMITS, MAIN, NO_KEYS, at, attempt, view

LATE = 900.0  # long after everything that was sent would show
COMPLETE = replace(ABSENT, complete=True)
WEAK = MAIN.with_changes(keys="weak")


@pytest.mark.parametrize(
    ("outcome", "settled", "executed_nothing"),
    [
        ("not_sent", False, True),
        ("turned_away", False, True),
        ("unanswered", True, True),
        ("unanswered", False, False),
        ("refused", True, False),  # whatever else is known, this key will not pay
        ("confirmed", False, False),
    ],
)
def test_an_attempt_that_may_be_sent_again(
    outcome: str, settled: bool, executed_nothing: bool
) -> None:
    assert not_executed(attempt(1, outcome, settled_by_evidence=settled)) is executed_nothing


@pytest.mark.parametrize(
    ("contract", "changes"),
    [(MAIN.with_changes(lookup="none"), {}), (MAIN, {"adopted": True})],
    ids=["no lookup", "adopted"],
)
def test_where_nobody_can_ask_or_knows_when_it_was_sent_no_quiet_ends(
    contract: ProviderContract, changes: dict[str, Any]
) -> None:
    assert quiet_end(view(), MAIN, (), LIMITS) == at(1 + 2 + 1 + 10)
    assert quiet_end(view(**changes), contract, (), LIMITS) is None


@pytest.mark.parametrize("changes", [{"adopted": True}, {"quarantined": True}])
def test_where_attempts_may_be_missing_nothing_is_proved(changes: dict[str, Any]) -> None:
    unsent = (attempt(1, "not_sent"),)
    assert absence(view(states.UNKNOWN, *unsent), None, None, MAIN, (), LIMITS) is not None
    seen = view(states.UNKNOWN, *unsent, **changes)
    assert absence(seen, COMPLETE, at(LATE), MAIN, (), LIMITS) is None


@pytest.mark.parametrize(
    ("changes", "finding", "looked"),
    [
        ({"quarantined": True}, COMPLETE, LATE),
        ({}, ABSENT, LATE),
        ({}, COMPLETE, None),
        ({}, COMPLETE, 14.0),
    ],
    ids=["quarantined", "a part of the list", "nobody asked", "at the end of the quiet"],
)
def test_a_lookup_that_does_not_show_all_there_is(
    changes: dict[str, Any], finding: Finding, looked: float | None
) -> None:
    def shows(seen: View, finding: Finding, looked: float | None) -> bool:
        asked = None if looked is None else at(looked)
        return shows_all_there_is(seen, finding, asked, MAIN, (), LIMITS)

    assert shows(view(), COMPLETE, 14.001) is True
    assert shows(view(**changes), finding, looked) is False


@pytest.mark.parametrize(
    ("contract", "now", "explained"),
    [
        (MAIN, 595.0, True),
        (MAIN, 595.1, False),
        (MAIN.with_changes(rejections_stored=False), 1.0, False),
        (WEAK, 1.0, False),
        (NO_KEYS, 1.0, False),
    ],
)
def test_only_a_key_that_lives_and_keeps_refusals_makes_another_attempt_the_same(
    contract: ProviderContract, now: float, explained: bool
) -> None:
    seen = view(states.UNKNOWN, attempt(1, "refused"), attempt(2))
    found = others_explained(seen, contract, LIMITS, at(now), besides_found=False)
    assert found is explained


@pytest.mark.parametrize(
    ("stopped", "idle", "flight", "explained"),
    [
        (100.0, None, 495, True),
        (100.0, None, 496, False),
        (400.0, 1, 195, True),
        (400.0, 1, 196, False),
        (None, 10, 483, True),
        (None, 10, 484, False),
        (None, None, 1, False),
        (100.0, 1, None, False),
    ],
)
def test_a_refusal_speaks_for_no_copy_that_lands_when_the_key_has_ended(
    stopped: float | None, idle: int | None, flight: int | None, explained: bool
) -> None:
    """The key lives until 595 s, skew and all; a copy leaves until its sender stopped, or until
    its deadline and the silence that its connection survives."""
    sent = attempt(
        2, None, send_deadline=at(102), stop_proof_at=None if stopped is None else at(stopped)
    )
    contract = MAIN.with_changes(
        flight_max=Fact(flight, "documented", "here"), idle_close=Fact(idle, "documented", "here")
    )
    seen = view(states.UNKNOWN, attempt(1, "refused"), sent)
    found = others_explained(seen, contract, LIMITS, at(500), besides_found=False)
    assert found is explained


RESENDABLE = view(inconclusive_at=(at(3), at(4)), sendable_until=at(LATE))


def _may(seen: View, *, now: float = 5, contract: ProviderContract = MAIN, **ask: Any) -> bool:
    finding, looked = ask.get("finding", COMPLETE), ask.get("looked", 4.0)
    asked = None if looked is None else at(looked)
    return may_resend(seen, finding, asked, contract, (), LIMITS, at(now))


@pytest.mark.parametrize(
    "changes",
    [
        *({each: True} for each in ("adopted", "quarantined", "halted", "has_case")),
        {"explained": False},
        {"sendable_until": None},
        {"sendable_until": at(5)},
        {"attempts": ()},
        {"attempts": tuple(attempt(no) for no in range(1, 6))},
        {"attempts": (attempt(1, "refused"), attempt(2))},
        {"attempts": (attempt(1, "accepted"), attempt(2))},
        {"attempts": (attempt(1, kept="error"), attempt(2))},
        {"inconclusive_at": (at(3),)},
    ],
)
def test_each_bar_by_itself_stops_a_second_send(changes: dict[str, Any]) -> None:
    assert _may(RESENDABLE)
    assert not _may(replace(RESENDABLE, **changes))


def test_a_key_that_is_kept_on_success_only_is_no_window() -> None:
    assert not _may(RESENDABLE, contract=WEAK)


@pytest.mark.parametrize(
    ("ask", "may"),
    [
        ({"looked": 399.0}, True),
        ({"looked": None}, False),
        ({"finding": None}, False),
        ({"finding": replace(ABSENT, verdict=Verdict.CANNOT_TELL)}, False),
    ],
)
def test_late_in_the_window_only_a_fresh_look_makes_it_safe(ask: dict[str, Any], may: bool) -> None:
    assert _may(RESENDABLE, now=400, **ask) is may


# The quiet period ends at 14 s; the schedule has looks at 8, 15 and 30 s.
@pytest.mark.parametrize(
    ("now", "at_seconds", "not_before"),
    [(8.5, 15.0, 15.0), (14.0, 15.0, 15.0), (14.001, 15.0, None), (15.0, 30.0, None)],
)
def test_the_next_look_is_a_second_after_the_quiet_or_by_the_schedule(
    now: float, at_seconds: float, not_before: float | None
) -> None:
    wanted = LookUpAgain(at(at_seconds), not_before=None if not_before is None else at(not_before))
    assert look_again(view(), MAIN, LIMITS, at(now)) == wanted


def test_a_look_that_is_due_as_the_quiet_ends_stays_as_it_is() -> None:
    contract = MAIN.with_changes(lookup_schedule=(14, 40))
    assert look_again(view(), contract, LIMITS, at(5)) == LookUpAgain(at(14))
    sooner = MAIN.with_changes(lookup_schedule=(40,))
    assert look_again(view(), sooner, LIMITS, at(5)) == LookUpAgain(at(15), not_before=at(15))
    assert look_again(view(), sooner, LIMITS, at(14)) == LookUpAgain(at(15), not_before=at(15))
