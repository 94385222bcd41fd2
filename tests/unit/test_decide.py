"""What follows from what is known: each row of the table, and the instants where it turns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciliation.decide import (
    AttemptView,
    Decision,
    LookUpAgain,
    OpenCase,
    Rest,
    Settle,
    View,
    decide,
    next_look,
    over_patience,
)
from reconciliation.matching import Candidate, Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import Fact, ProviderContract
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers import plain, stripe

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIMITS = Limits()
MAIN = plain.CONTRACTS["plain-main"]
FOREVER = plain.CONTRACTS["plain-forever"]
NO_KEYS = plain.CONTRACTS["plain-nokeys"]
BLIND = plain.CONTRACTS["plain-blind"]
RECORD = RefundRecord(
    ref="rf_0010",
    payment_ref="pi_4821",
    amount_minor=7900,
    currency="USD",
    provider_status="succeeded",
    marker="0190a5c2",
    created_at=NOON,
)
SAID_NO = [
    *(states.FAILED, states.RETURNED, states.DENIED, states.REJECTED, states.WITHDRAWN),
    *(states.EXPIRED, states.AUTHORIZED, states.AWAITING_APPROVAL),
]
UNCERTAIN = [states.SUBMITTING, states.UNKNOWN, states.PENDING]
CANNOT_TELL = Finding(verdict=Verdict.CANNOT_TELL, because="HTTP 503.")
ABSENT = Finding(verdict=Verdict.ABSENT, because="none of ours")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def attempt(no: int = 1, outcome: str | None = "unanswered", **changes: Any) -> AttemptView:
    values: dict[str, Any] = {
        "no": no,
        "outcome": outcome,
        "recorded_at": NOON,
        "send_deadline": at(2),
        "stop_proof_at": at(1) if outcome else None,
        "settled_by_evidence": False,
    }
    return AttemptView(**(values | changes))


def view(state: str = states.UNKNOWN, *attempts: AttemptView, **changes: Any) -> View:
    values: dict[str, Any] = {
        "state": state,
        "entered_at": NOON,
        "unknown_since": NOON if state == states.UNKNOWN else None,
        "attempts": attempts or (attempt(),),
        "has_case": False,
        "inconclusive_at": (),
        "booked_ref": None,
    }
    return View(**(values | changes))


def shown(status: str = "succeeded", **changes: Any) -> Finding:
    record = replace(RECORD, provider_status=status, **changes)
    return Finding(verdict=Verdict.MATCH, because="it matches", record=record)


def decided(
    seen: View,
    finding: Finding | None,
    *,
    now: float = 1,
    contract: ProviderContract = MAIN,
    limits: Limits = LIMITS,
) -> Decision:
    return decide(seen, finding, contract=contract, words=plain.WORDS, limits=limits, now=at(now))


@pytest.mark.parametrize("state", UNCERTAIN)
def test_a_match_that_succeeded_settles(state: str) -> None:
    decision = decided(view(state), shown())
    assert decision == Settle("found_succeeded", "it matches", RECORD)


@pytest.mark.parametrize("state", SAID_NO)
@pytest.mark.parametrize("status", ["succeeded", "pending"])
def test_a_match_contradicts_every_state_that_says_no_money_moved(state: str, status: str) -> None:
    decision = decided(view(state), shown(status))
    assert isinstance(decision, Settle)
    assert (decision.event, decision.record) == (
        "contradicted",
        replace(RECORD, provider_status=status),
    )


def test_the_booked_refund_seen_again_is_nothing_new() -> None:
    assert decided(view(states.SUCCEEDED, booked_ref="rf_0010"), shown()) == Rest()


def test_another_refund_than_the_booked_one_is_a_contradiction() -> None:
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_0001"), shown())
    assert isinstance(decision, OpenCase)
    assert decision.reason == "contradiction"


@pytest.mark.parametrize("state", [states.UNKNOWN, states.SUBMITTING])
def test_a_match_that_is_still_working_is_pending(state: str) -> None:
    decision = decided(view(state), shown("pending"))
    assert isinstance(decision, Settle)
    assert decision.event == "found_pending"


def test_still_working_where_it_is_pending_already_looks_again() -> None:
    assert decided(view(states.PENDING), shown("pending")) == LookUpAgain(at(2))


def test_a_booked_refund_that_works_again_is_a_contradiction() -> None:
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_0010"), shown("pending"))
    assert decision == OpenCase("contradiction", "it matches")


@pytest.mark.parametrize("state", UNCERTAIN)
@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_a_final_no_of_the_only_attempt_fails(state: str, status: str) -> None:
    decision = decided(view(state), shown(status), contract=NO_KEYS)
    assert isinstance(decision, Settle)
    assert decision.event == "found_failed"


@pytest.mark.parametrize(
    ("other", "contract", "fails"),
    [
        # Another attempt that may have paid keeps the question open without keys ...
        (attempt(2, "unanswered"), NO_KEYS, False),
        (attempt(2, None), NO_KEYS, False),
        # ... and not where the key makes it the same refund and keeps refusals.
        (attempt(2, "unanswered"), FOREVER, True),
        (attempt(2, None), FOREVER, True),
        (attempt(2, None), FOREVER.with_changes(rejections_stored=False), False),
        # An attempt with an answer of its own is explained everywhere.
        (attempt(2, "not_sent"), NO_KEYS, True),
        (attempt(2, "turned_away"), NO_KEYS, True),
        (attempt(2, "refused"), NO_KEYS, True),
        (attempt(2, None, settled_by_evidence=True), NO_KEYS, True),
        (attempt(2, "accepted"), NO_KEYS, False),
    ],
)
def test_a_final_no_fails_only_if_every_other_attempt_is_explained(
    other: AttemptView, contract: ProviderContract, fails: bool
) -> None:
    decision = decided(view(states.UNKNOWN, attempt(1), other), shown("failed"), contract=contract)
    assert isinstance(decision, Settle if fails else LookUpAgain)


def test_a_final_no_where_we_said_failed_agrees_and_elsewhere_contradicts() -> None:
    assert decided(view(states.FAILED), shown("failed")) == Rest()
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_0010"), shown("failed"))
    assert decision == OpenCase("contradiction", "it matches")


def test_a_status_nobody_told_us_about_is_for_a_person() -> None:
    decision = decided(view(), shown("reversed"))
    assert isinstance(decision, OpenCase)
    assert decision.reason == "mismatch"
    assert "reversed" in decision.because


@pytest.mark.parametrize("state", states.STATES)
def test_a_difference_is_always_for_a_person(state: str) -> None:
    finding = Finding(verdict=Verdict.DIFFERS, because="its amount differs", record=RECORD)
    assert decided(view(state), finding) == OpenCase("mismatch", "its amount differs")


def twice(*statuses: str, field: str = "match") -> Finding:
    records = [
        replace(RECORD, ref=f"rf_00{10 + n}", provider_status=status, created_at=at(-n))
        for n, status in enumerate(statuses)
    ]
    return Finding(
        verdict=Verdict.DUPLICATE,
        because="more than one",
        candidates=tuple(
            Candidate(record=each, ours=True, fields={"marker": "match", "amount": field})
            for each in records
        ),
    )


def test_paid_twice_books_the_first_and_counts_the_other() -> None:
    decision = decided(view(), twice("succeeded", "succeeded"))
    assert isinstance(decision, Settle)
    assert decision.event == "found_succeeded"
    assert decision.record is not None
    assert decision.record.ref == "rf_0011"
    assert [each.ref for each in decision.surplus] == ["rf_0010"]


def test_paid_again_after_it_was_booked_counts_the_other() -> None:
    decision = decided(
        view(states.SUCCEEDED, booked_ref="rf_0010"), twice("succeeded", "succeeded")
    )
    assert isinstance(decision, OpenCase)
    assert decision.reason == "duplicate"
    assert [each.ref for each in decision.surplus] == ["rf_0011"]


@pytest.mark.parametrize(
    ("state", "finding"),
    [
        (states.UNKNOWN, twice("succeeded", "pending")),
        (states.UNKNOWN, twice("succeeded", "failed")),
        (states.UNKNOWN, twice("succeeded", "succeeded", field="differs")),
        (states.FAILED, twice("succeeded", "succeeded")),
    ],
)
def test_two_refunds_that_are_not_both_clearly_paid_are_for_a_person(
    state: str, finding: Finding
) -> None:
    assert decided(view(state), finding) == OpenCase("duplicate", "more than one")


# An attempt was refused, the others explained


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
        plain.CONTRACTS["plain-weak"].with_changes(rejections_stored=True),
    ],
)
def test_keys_explain_nothing_without_stored_refusals_or_a_known_window(
    contract: ProviderContract,
) -> None:
    seen = view(states.UNKNOWN, attempt(1, None), attempt(2, "refused"))
    assert isinstance(decided(seen, ABSENT, contract=contract), LookUpAgain)


# Nothing can settle it; nothing shown


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
    assert patience(view(), 14.999) is None
    assert "longer than 15 s" in (patience(view(), 15) or "")


def test_patience_ends_after_a_day_whatever_the_contract_says() -> None:
    slow = MAIN.with_changes(normal_window_seconds=10**6)
    assert patience(view(), 86_399.999, slow) is None
    assert "for a day" in (patience(view(), 86_400, slow) or "")


def test_patience_counts_from_when_it_first_became_unknown() -> None:
    again = view(entered_at=at(10), unknown_since=NOON)
    assert patience(again, 15) is not None
    assert patience(replace(again, unknown_since=None), 15) is None


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
