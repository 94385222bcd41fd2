"""What follows from what a provider shows: each row of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.decide import (
    AttemptView,
    LookUpAgain,
    OpenCase,
    Rest,
    Settle,
    decide,
)
from reconciliation.matching import Candidate, Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import ProviderContract
from refunds.providers import plain
from tests.unit.deciding import (
    ABSENT,
    CANNOT_TELL,
    FOREVER,
    LIMITS,
    MAIN,
    NO_KEYS,
    RECORD,
    SAID_NO,
    UNCERTAIN,
    at,
    attempt,
    decided,
    shown,
    view,
)


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
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_0009"), shown("failed"))
    assert decision == OpenCase("contradiction", "it matches")


def test_a_status_nobody_told_us_about_is_for_a_person() -> None:
    decision = decided(view(), shown("reversed"))
    assert isinstance(decision, OpenCase)
    assert decision.reason == "mismatch"
    assert "reversed" in decision.because


@pytest.mark.parametrize("state", states.STATES)
def test_a_difference_is_always_for_a_person(state: str) -> None:
    came_to_nothing = replace(RECORD, provider_status="failed")
    for record in (came_to_nothing,) if state in SAID_NO else (RECORD, came_to_nothing):
        finding = Finding(verdict=Verdict.DIFFERS, because="its amount differs", record=record)
        assert decided(view(state), finding) == OpenCase("mismatch", "its amount differs")


def _differs(status: str) -> Finding:
    record = replace(RECORD, provider_status=status)
    return Finding(verdict=Verdict.DIFFERS, because="more than one", record=record)


@pytest.mark.parametrize("state", sorted(SAID_NO))
def test_where_no_money_moved_by_our_record_whatever_says_that_some_did_makes_it_unknown(
    state: str,
) -> None:
    """Otherwise what people say of it could let it go out (money rules 2 and 7)."""
    for finding in (_differs("succeeded"), _differs("reversed"), _differs("pending")):
        assert decided(view(state), finding) == Settle("contradicted", "more than one")
    for statuses in (("succeeded", "succeeded"), ("failed", "pending"), ("odd", "failed")):
        assert decided(view(state), twice(*statuses)) == Settle("contradicted", "more than one")
    odd = decided(view(state), shown("reversed"))
    assert odd == Settle("contradicted", "it matches")
    assert decided(view(state), twice("failed", "failed")) in (
        OpenCase("duplicate", "more than one"),
        Rest(),
    )


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
        (states.FAILED, twice("failed", "failed")),
    ],
)
def test_two_refunds_that_are_not_both_clearly_paid_are_for_a_person(
    state: str, finding: Finding
) -> None:
    assert decided(view(state), finding) == OpenCase("duplicate", "more than one")


@pytest.mark.parametrize(
    ("state", "has_case", "poison"),
    [(states.UNKNOWN, False, True), (states.UNKNOWN, True, False), (states.PENDING, False, False)],
)
def test_a_kept_refusal_at_the_door_asks_a_person_once_and_only_about_an_unknown_refund(
    state: str, has_case: bool, poison: bool
) -> None:
    seen = view(state, attempt(kept="turned_away"), has_case=has_case)
    decision = decided(seen, CANNOT_TELL)
    assert (isinstance(decision, OpenCase) and decision.reason == "poison") is poison


@pytest.mark.parametrize(("state", "fails"), [(states.UNKNOWN, True), (states.AUTHORIZED, False)])
def test_a_refusal_beside_an_attempt_that_an_absence_explains_fails_what_is_unknown(
    state: str, fails: bool
) -> None:
    contract = MAIN.with_changes(rejections_stored=False)
    seen = view(state, attempt(1, "refused"), attempt(2))
    decision = decide(
        seen,
        ABSENT,
        contract=contract,
        words=plain.WORDS,
        limits=LIMITS,
        now=at(901),
        looked_at=at(900),
    )
    assert isinstance(decision, Settle if fails else Rest)
    if isinstance(decision, Settle):
        assert (decision.event, decision.covers) == ("found_failed", True)


@pytest.mark.parametrize(
    ("changes", "event"),
    [
        ({}, "proved_absent"),
        ({"halted": True}, "proved_not_executed"),
        ({"has_case": True}, "proved_not_executed"),
    ],
)
def test_what_is_halted_or_has_a_case_is_not_sent_again(
    changes: dict[str, Any], event: str
) -> None:
    seen = view(states.UNKNOWN, attempt(1, "not_sent"), sendable_until=at(90_000), **changes)
    decision = decided(seen, CANNOT_TELL)
    assert isinstance(decision, Settle)
    assert decision.event == event


def test_of_two_that_were_paid_the_one_whose_time_is_known_is_booked() -> None:
    undated = replace(RECORD, ref="rf_0001", created_at=None)
    both = tuple(
        Candidate(record=each, ours=True, fields={"marker": "match"}) for each in (undated, RECORD)
    )
    twice = Finding(verdict=Verdict.DUPLICATE, because="two", candidates=both)
    decision = decided(view(), twice)
    assert isinstance(decision, Settle)
    assert (decision.record, decision.surplus) == (RECORD, (undated,))
