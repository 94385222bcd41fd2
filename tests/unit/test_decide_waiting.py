"""What follows when nothing is shown: a refusal, patience, and the instants where it turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciliation.decide import (
    AttemptView,
    LookUpAgain,
    OpenCase,
    Rest,
    Settle,
    View,
    next_look,
    over_patience,
)
from reconciliation.matching import Finding
from refunds.domain import states
from refunds.domain.contract import Fact, ProviderContract
from refunds.providers import plain_contracts, stripe
from tests.unit.deciding import (
    ABSENT,
    BLIND,
    CANNOT_TELL,
    LIMITS,
    MAIN,
    NO_KEYS,
    NOON,
    SAID_NO,
    UNCERTAIN,
    at,
    attempt,
    decided,
    view,
)


@pytest.mark.parametrize("finding", [None, ABSENT, CANNOT_TELL])
@pytest.mark.parametrize("state", [states.UNKNOWN, states.AUTHORIZED])
def test_a_refusal_read_late_ends_it(state: str, finding: Finding | None) -> None:
    decision = decided(view(state, attempt(1, "refused")), finding, contract=NO_KEYS)
    assert isinstance(decision, Settle)
    assert (decision.event, decision.record) == ("found_failed", None)


@pytest.mark.parametrize("outcome", ["unanswered", "confirmed", "accepted", None])
def test_a_refusal_ends_nothing_beside_an_attempt_that_may_have_paid(outcome: str | None) -> None:
    seen = view(states.UNKNOWN, attempt(1, outcome), attempt(2, "refused"))
    assert isinstance(decided(seen, ABSENT, contract=NO_KEYS), LookUpAgain)


def test_a_refusal_explains_others_by_the_key_while_the_key_lives() -> None:
    """From the first attempt on, for the window less the clock's margin (rules 35 and 37)."""
    seen = view(
        states.UNKNOWN,
        attempt(1, "turned_away"),
        attempt(2, None, recorded_at=at(500)),
        attempt(3, "refused", recorded_at=at(501)),
    )
    patient = replace(LIMITS, inconclusive_lookups_max=99)
    ends = 600 - LIMITS.skew_seconds
    assert isinstance(decided(seen, ABSENT, now=ends, limits=patient), Settle)
    after = decided(replace(seen, has_case=True), ABSENT, now=ends + 0.001, limits=patient)
    assert isinstance(after, LookUpAgain)


@pytest.mark.parametrize(
    "contract",
    [
        MAIN.with_changes(rejections_stored=False),
        MAIN.with_changes(key_window=Fact(None, "unknown", "")),
        plain_contracts.CONTRACTS["plain-weak"].with_changes(rejections_stored=True),
    ],
)
def test_keys_explain_nothing_without_stored_refusals_or_a_known_window(
    contract: ProviderContract,
) -> None:
    seen = view(states.UNKNOWN, attempt(1, None), attempt(2, "refused"))
    assert isinstance(decided(seen, ABSENT, contract=contract), LookUpAgain)


def test_what_nothing_can_settle_is_for_a_person_at_once() -> None:
    decision = decided(view(), CANNOT_TELL, contract=BLIND, now=0)
    assert isinstance(decision, OpenCase)
    assert decision.reason == "unresolved"
    again = decided(view(has_case=True), CANNOT_TELL, contract=BLIND, now=0)
    assert isinstance(again, LookUpAgain)


@pytest.mark.parametrize("finding", [None, ABSENT, CANNOT_TELL])
@pytest.mark.parametrize("state", UNCERTAIN)
def test_nothing_shown_looks_again_and_concludes_nothing(
    state: str, finding: Finding | None
) -> None:
    assert decided(view(state), finding) == LookUpAgain(at(2))


@pytest.mark.parametrize("state", [*SAID_NO, states.SUCCEEDED, states.MISMATCHED])
def test_an_ended_operation_rests_and_is_asked_daily_while_a_case_is_open(state: str) -> None:
    assert decided(view(state), ABSENT) == Rest()
    assert decided(view(state, has_case=True), ABSENT) == LookUpAgain(at(86_401))


def patience(seen: View, now: float, contract: ProviderContract = MAIN) -> str | None:
    return over_patience(seen, contract, LIMITS, at(now))


def test_patience_ends_with_the_normal_window_and_its_grace() -> None:
    assert patience(view(), 14.999, UNBOUNDED) is None
    assert "longer than 15 s" in (patience(view(), 15, UNBOUNDED) or "")


def test_what_takes_long_waits_for_the_first_lookup_that_could_have_proved_something() -> None:
    """The quiet period ends at 14: a lookup before it cannot tell, whatever it shows."""
    assert patience(view(inconclusive_at=(at(13), at(14))), 16) is None
    assert "longer than 15 s" in (patience(view(inconclusive_at=(at(14.001),)), 16) or "")
    assert patience(view(inconclusive_at=(at(14.001),)), 14.9) is None


def test_patience_ends_after_a_day_whatever_the_contract_says() -> None:
    slow = MAIN.with_changes(normal_window_seconds=10**6)
    assert patience(view(), 86_399.999, slow) is None
    assert "for a day" in (patience(view(), 86_400, slow) or "")


def test_patience_counts_from_when_it_first_became_unknown() -> None:
    again = view(entered_at=at(10), unknown_since=NOON)
    assert patience(again, 15, UNBOUNDED) is not None
    assert patience(replace(again, unknown_since=None), 15, UNBOUNDED) is None


def test_the_time_of_a_quarantine_costs_no_patience_where_something_can_be_asked() -> None:
    seen = view(quarantined=True, inconclusive_at=(at(15), at(16), at(17)))
    assert patience(seen, 3_600) is None
    assert patience(seen, 3_600, UNBOUNDED) is None
    assert "for a day" in (patience(seen, 86_400) or "")
    assert "only a person" in (patience(seen, 1, BLIND) or "")
    hooks = plain_contracts.CONTRACTS["plain-hooks"]
    assert patience(seen, 3_600, hooks) is not None

    lifted = replace(seen, quarantined=False, resumed_at=at(3_600))
    assert patience(lifted, 3_614, UNBOUNDED) is None
    assert patience(lifted, 3_615, UNBOUNDED) is not None
    assert patience(lifted, 3_615) is None  # no lookup since then has failed to prove anything
    asked = replace(lifted, inconclusive_at=(at(3_601),))
    assert "longer than 15 s" in (patience(asked, 3_615) or "")
    before = replace(lifted, resumed_at=at(-60))
    assert patience(before, 15, UNBOUNDED) is not None


UNBOUNDED = plain_contracts.CONTRACTS["plain-unbounded"]
SLOW = MAIN.with_changes(normal_window_seconds=10**6)


@pytest.mark.parametrize(
    ("attempts", "quiet"),
    [
        # Stop proof + D + V + 2 skew; without one, deadline + I as well.
        ((attempt(1),), 1 + 2 + 1 + 10),
        ((attempt(1, None),), 2 + 1 + 2 + 1 + 10),
    ],
)
def test_only_lookups_after_the_quiet_period_count_against_patience(
    attempts: tuple[AttemptView, ...], quiet: int
) -> None:
    def over(*seconds: float) -> str | None:
        looked = tuple(at(each) for each in seconds)
        return patience(view(states.UNKNOWN, *attempts, inconclusive_at=looked), quiet + 9, SLOW)

    assert over(quiet, quiet + 1, quiet + 2) is None
    assert over(quiet + 0.001, quiet + 1, quiet + 2) == "3 lookups in a row could not tell."
    assert over(1, 2, 3, 4, quiet + 1, quiet + 2) is None


def test_without_a_known_bound_lookups_count_from_900_seconds() -> None:
    def over(*seconds: float) -> str | None:
        slow = stripe.CONTRACT.with_changes(normal_window_seconds=10**6)
        return patience(view(inconclusive_at=tuple(at(each) for each in seconds)), 910, slow)

    assert over(900, 901, 902) is None
    assert over(900.001, 901, 902) is not None


def test_one_case_is_enough() -> None:
    assert isinstance(decided(view(has_case=True), ABSENT, now=10**6), LookUpAgain)
    assert isinstance(decided(view(), ABSENT, now=10**6), OpenCase)


@pytest.mark.parametrize(
    ("now", "expected"),
    [(0, 1), (0.999, 1), (1, 2), (3, 4), (14, 15), (15, 30), (30, 60), (95, 125)],
)
def test_looks_come_early_and_then_rest(now: float, expected: int) -> None:
    assert next_look(view(), MAIN, LIMITS, at(now)) == at(expected)


def test_with_a_case_looks_are_hourly_and_after_a_day_every_six_hours() -> None:
    seen = view(has_case=True)
    assert next_look(seen, MAIN, LIMITS, at(86_399)) == at(86_399 + 3_600)
    assert next_look(seen, MAIN, LIMITS, at(86_400)) == at(86_400 + 21_600)
