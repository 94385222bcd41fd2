"""`decide` against its restatement, and the table of what each contract allows, row by row."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from refunds.domain import states
from refunds.domain.contract import allowed
from tests.model.check import differences
from tests.model.restated import Promise, Situation
from tests.model.situations import (
    CIRCUMSTANCES,
    PROMISES,
    SHOWN,
    contract_of,
    decided,
    histories,
    in_short,
    moments,
    situations,
    tries,
)

_DRAWS = 500
_SEED = 2411


@pytest.mark.parametrize("number", range(len(PROMISES)), ids=[each.name for each in PROMISES])
def test_of_an_unknown_refund_with_at_most_one_attempt_decide_says_what_the_rules_say(
    number: int,
) -> None:
    compared, differing = differences(situations("unknown", PROMISES[number], 1))
    assert differing == []
    assert compared > 1_000


def test_in_any_state_and_history_decide_says_what_the_rules_say() -> None:
    """Drawn from the full product, which `make model-check` goes through."""
    draw = random.Random(_SEED)  # noqa: S311 - choosing what to compare
    every = list(histories(3))

    def drawn() -> Iterator[Situation]:
        for _ in range(_DRAWS):
            state = draw.choice([*states.STATES, *["unknown"] * 10])
            plain = Situation(
                state, draw.choice(every), draw.choice(SHOWN), True, 0, 0, draw.choice(PROMISES)
            )
            yield from moments(plain._replace(**draw.choice(CIRCUMSTANCES)))

    compared, differing = differences(drawn())
    assert differing == []
    assert compared > 10_000


# What each contract allows, as table 2.4 of the reliability notes has it: success by itself, sent
# again by itself, ended as not executed by itself. Written by hand.
ROWS: dict[str, tuple[bool, str, bool]] = {
    "forever, lookup": (True, "always", True),
    "forever, lookup, nothing else": (True, "always", False),
    "forever, no lookup": (False, "always", False),
    "window, lookup, bounded": (True, "in the window, and after the quiet period", True),
    "window, long flight": (True, "in the window, and after the quiet period", True),
    "window, refusals not kept": (True, "in the window, and after the quiet period", True),
    "window, lookup, unbounded": (True, "never", False),
    "window, lookup, pausable": (True, "after the quiet period", True),
    "window, not-after": (True, "in the window, and after the quiet period", True),
    "window, no lookup": (False, "in the window", False),
    "window of unknown length": (True, "after the quiet period", True),
    "weak, lookup, bounded": (True, "after the quiet period", True),
    "none, lookup, bounded": (True, "after the quiet period", True),
    "none, lookup, unbounded": (True, "never", False),
    "none, no lookup": (False, "never", False),
    "none, no lookup, notices": (False, "never", False),
    "accepted for resends": (True, "in the window", False),
    "accepted for absence": (True, "never", True),
}


def test_every_contract_of_the_table_has_its_row() -> None:
    assert set(ROWS) == {each.name for each in PROMISES}


@pytest.mark.parametrize("promise", PROMISES, ids=[each.name for each in PROMISES])
def test_the_table_is_what_is_computed_and_what_is_done(promise: Promise) -> None:
    """Of one silent attempt whose sender has stopped, over all moments."""
    success, again, ends = ROWS[promise.name]
    contract, accepted = contract_of(promise)
    may = allowed(contract, accepted=accepted)
    assert may.success_by_lookup is success
    assert may.absence is ends
    assert may.resend_always is (again == "always")
    assert may.resend_in_window is (again == "always" or again.startswith("in the window"))
    done = {
        (verdict.does, verdict.what)
        for verdict in (
            in_short(decided(each))
            for shown in ("absent", "unreadable")
            if promise.looks or shown == "unreadable"
            for each in moments(
                Situation("unknown", tries("unanswered"), shown, True, 0, 0, promise)
            )
        )
    }
    assert (("resend", "") in done) is may.resend_in_window
    assert (("settle", "proved_not_executed") in done) is ends
    after = ends and (may.resend_always or again.endswith("after the quiet period"))
    assert (("settle", "proved_absent") in done) is after


@pytest.mark.parametrize(
    "promise", [each for each in PROMISES if each.idle is None], ids=lambda each: each.name
)
def test_a_sender_that_may_still_sleep_proves_nothing_where_its_connection_may_stay_open(
    promise: Promise,
) -> None:
    never = {"settle"} if promise.keys == "forever" else {"settle", "resend"}
    for each in moments(Situation("unknown", tries(None), "absent", True, 0, 0, promise)):
        assert in_short(decided(each)).does not in never
