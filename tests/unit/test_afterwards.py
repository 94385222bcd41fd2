"""What follows once an operation has ended: every row of its table, and what must follow nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.decide import Decision, LookUpAgain, OpenCase, Rest, Settle, decide
from reconciliation.matching import Candidate, Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import UNKNOWN_FACT, ProviderContract
from refunds.domain.outcome import RefundRecord
from refunds.providers import plain
from tests.unit.deciding import (
    ABSENT,
    BLIND,
    CANNOT_TELL,
    FOREVER,
    LIMITS,
    MAIN,
    RECORD,
    SAID_NO,
    at,
    decided,
    shown,
    view,
)

OURS = RECORD.ref
DAY = 86_400
MOVED = [states.SUCCEEDED, states.MISMATCHED]


def two(*records: tuple[str, str, str | None]) -> Finding:
    """Refunds of ours as (reference, status, marker)."""
    candidates = []
    for ref, status, marker in records:
        record = replace(RECORD, ref=ref, provider_status=status, marker=marker)
        candidates.append(Candidate(record=record, ours=True, fields={"marker": "match"}))
    return Finding(verdict=Verdict.DUPLICATE, because="more than one", candidates=tuple(candidates))


@pytest.mark.parametrize("state", MOVED)
@pytest.mark.parametrize("status", ["failed", "canceled"])
def test_a_booked_refund_that_came_back_is_taken_back(state: str, status: str) -> None:
    seen = view(state, booked_ref=OURS, booked_minor=7900)
    decision = decided(seen, shown(status))
    assert isinstance(decision, Settle)
    assert (decision.event, decision.record) == (
        "taken_back",
        replace(RECORD, provider_status=status),
    )
    assert status in decision.because


@pytest.mark.parametrize("state", MOVED)
def test_another_refund_of_ours_that_failed_takes_nothing_back(state: str) -> None:
    decision = decided(view(state, booked_ref="rf_0009"), shown("failed"))
    assert isinstance(decision, OpenCase)
    assert decision.reason == "contradiction"


def test_a_booked_refund_that_is_in_work_again_asks_a_person() -> None:
    decision = decided(view(states.SUCCEEDED, booked_ref=OURS), shown("pending"))
    assert isinstance(decision, OpenCase)
    assert decision.reason == "contradiction"


@pytest.mark.parametrize("state", [states.FAILED, states.RETURNED])
def test_what_came_back_and_is_shown_as_such_rests(state: str) -> None:
    assert decided(view(state), shown("failed")) == Rest()


def test_what_came_back_and_is_shown_as_paid_is_a_contradiction() -> None:
    decision = decided(view(states.RETURNED), shown())
    assert isinstance(decision, Settle)
    assert decision.event == "contradicted"


def test_a_refund_that_people_ruled_to_be_different_rests_while_it_is_shown_as_booked() -> None:
    seen = view(states.MISMATCHED, booked_ref=OURS, booked_minor=3000)
    record = replace(RECORD, amount_minor=3000)
    differs = Finding(verdict=Verdict.DIFFERS, because="its amount", record=record)
    assert decided(seen, differs) == Rest()
    back = replace(differs, record=replace(record, provider_status="failed"))
    decision = decided(seen, back)
    assert isinstance(decision, Settle)
    assert decision.event == "taken_back"
    other = decided(replace(seen, booked_minor=2999), differs)
    assert isinstance(other, OpenCase)
    assert other.reason == "mismatch"


@pytest.mark.parametrize(
    ("state", "by_ruling", "booked", "event"),
    [
        (states.SUCCEEDED, True, "rf_0009", "ruling_contradicted"),
        (states.SUCCEEDED, True, OURS, None),
        (states.SUCCEEDED, False, "rf_0009", None),
        (states.MISMATCHED, True, "rf_0009", "ruling_contradicted"),
        (states.MISMATCHED, True, OURS, "ruling_contradicted"),
    ],
)
def test_our_refund_shown_where_only_people_said_which_one_it_was(
    state: str, by_ruling: bool, booked: str, event: str | None
) -> None:
    seen = view(state, by_ruling=by_ruling, booked_ref=booked, booked_minor=3000)
    decision = decided(seen, shown())
    assert (decision.event if isinstance(decision, Settle) else None) == event


@pytest.mark.parametrize("status", ["failed", "pending"])
def test_a_ruling_is_not_contradicted_by_a_refund_that_was_not_paid(status: str) -> None:
    seen = view(states.SUCCEEDED, by_ruling=True, booked_ref="rf_0009")
    assert isinstance(decided(seen, shown(status)), OpenCase)


def test_of_two_the_one_with_our_marker_contradicts_the_one_that_people_named() -> None:
    seen = view(states.SUCCEEDED, by_ruling=True, booked_ref="rf_0009")
    decision = decided(seen, two(("rf_0009", "succeeded", None), (OURS, "succeeded", "0190a5c2")))
    assert isinstance(decision, Settle)
    assert decision.event == "ruling_contradicted"
    assert isinstance(decision.record, RefundRecord)
    assert decision.record.ref == OURS
    # Where both carry it, or the marked one was not paid, or no ruling was given: paid twice.
    for found, ruled in (
        (two(("rf_0009", "succeeded", "0190a5c2"), (OURS, "succeeded", "0190a5c2")), True),
        (two(("rf_0009", "succeeded", None), (OURS, "failed", "0190a5c2")), True),
        (two(("rf_0009", "succeeded", None), (OURS, "succeeded", "0190a5c2")), False),
    ):
        decision = decided(replace(seen, by_ruling=ruled), found)
        assert not isinstance(decision, Settle)


def test_a_duplicate_that_was_recovered_asks_nobody_again() -> None:
    seen = view(states.SUCCEEDED, booked_ref=OURS)
    assert decided(seen, two((OURS, "succeeded", "m"), ("rf_2", "failed", "m"))) == Rest()
    for records in (
        (("rf_2", "succeeded", "m"), (OURS, "failed", "m")),
        ((OURS, "succeeded", "m"), ("rf_2", "succeeded", "m")),
        ((OURS, "succeeded", "m"), ("rf_2", "pending", "m")),
    ):
        decision = decided(seen, two(*records))
        assert isinstance(decision, OpenCase)
        assert decision.reason == "duplicate"


@pytest.mark.parametrize("state", [*SAID_NO, *MOVED])
def test_what_a_list_showed_is_never_forgotten_because_a_lookup_could_not_tell(state: str) -> None:
    seen = view(state, sighted=True, booked_ref=OURS)
    assert isinstance(decided(seen, CANNOT_TELL), LookUpAgain)
    decision = decided(seen, ABSENT)
    assert isinstance(decision, OpenCase)
    assert decision.reason == "contradiction"
    assert isinstance(decided(replace(seen, has_case=True), ABSENT), LookUpAgain)


def test_nothing_is_proved_absent_or_sent_again_that_a_list_has_shown() -> None:
    late = 100_000
    seen = view(states.UNKNOWN, has_case=False, sighted=True)
    for now in (1, 30, 60):
        assert isinstance(decided(seen, ABSENT, now=now), LookUpAgain | OpenCase)
    decision = decided(seen, ABSENT, now=late)
    assert isinstance(decision, OpenCase)
    assert decision.reason == "unresolved"
    assert isinstance(decided(replace(seen, state=states.PENDING), ABSENT, now=1), LookUpAgain)
    blind = decided(seen, CANNOT_TELL, contract=BLIND)
    assert isinstance(blind, OpenCase)


@pytest.mark.parametrize("state", MOVED)
@pytest.mark.parametrize(
    ("contract", "after"),
    [
        (MAIN, 2 + 1 + 10),  # D, V and the skew twice
        (FOREVER.with_changes(flight_max=UNKNOWN_FACT), DAY),
        (FOREVER.with_changes(lookup_lag=UNKNOWN_FACT), DAY),
    ],
    ids=["bounded", "no flight", "no lag"],
)
def test_what_is_booked_and_no_longer_listed_asks_a_person_once_it_would_show(
    state: str, contract: ProviderContract, after: float
) -> None:
    seen = view(state, booked_ref=OURS)

    def asked(seconds: float, finding: Finding | None = ABSENT, **changes: Any) -> Decision:
        return decide(
            replace(seen, **changes),
            finding,
            contract=contract,
            words=plain.WORDS,
            limits=LIMITS,
            now=at(seconds + 1),
            looked_at=at(seconds),
        )

    assert asked(after) == Rest()
    decision = asked(after + 0.001)
    assert isinstance(decision, OpenCase)
    assert (decision.reason, decision.because.split()[0]) == ("contradiction", OURS)
    assert asked(after + 1, has_case=True) == LookUpAgain(at(after + 2 + DAY))
    gone = replace(CANNOT_TELL, gone=OURS)
    assert isinstance(asked(after + 0.001, gone), OpenCase)
    for finding in (ABSENT, gone):
        assert asked(after + 1, finding, answered=True) == Rest()
    for nothing in (CANNOT_TELL, None, replace(CANNOT_TELL, gone="rf_other")):
        assert asked(after + 1, nothing) == Rest()
    assert asked(after + 1, CANNOT_TELL, booked_ref=None) == Rest()
    unread = decide(
        seen, ABSENT, contract=contract, words=plain.WORDS, limits=LIMITS, now=at(10 * DAY)
    )
    assert unread == Rest()


@pytest.mark.parametrize("state", [states.FAILED, states.RETURNED])
def test_what_is_not_booked_may_be_missing_from_every_list(state: str) -> None:
    decision = decide(
        view(state),
        ABSENT,
        contract=MAIN,
        words=plain.WORDS,
        limits=LIMITS,
        now=at(10 * DAY),
        looked_at=at(9 * DAY),
    )
    assert decision == Rest()


@pytest.mark.parametrize(
    ("status", "amount_minor", "rests"),
    [("succeeded", 3000, True), ("pending", 3000, False), ("succeeded", 2999, False)],
)
def test_a_different_refund_rests_only_while_it_is_paid_as_it_was_booked(
    status: str, amount_minor: int, rests: bool
) -> None:
    record = replace(RECORD, provider_status=status, amount_minor=amount_minor)
    differs = Finding(verdict=Verdict.DIFFERS, because="its amount", record=record)
    seen = view(states.MISMATCHED, booked_ref=OURS, booked_minor=3000)
    assert (decided(seen, differs) == Rest()) is rests
    asked = decided(replace(seen, state=states.SUCCEEDED), differs)
    assert isinstance(asked, OpenCase)
    assert asked.reason == "mismatch"


def test_what_came_back_and_differs_asks_a_person() -> None:
    record = replace(RECORD, provider_status="failed", amount_minor=1)
    differs = Finding(verdict=Verdict.DIFFERS, because="its amount", record=record)
    decision = decided(view(states.RETURNED), differs)
    assert isinstance(decision, OpenCase)
    assert decision.reason == "mismatch"


def test_of_two_a_refund_with_another_marker_contradicts_no_ruling() -> None:
    records = [replace(RECORD, ref=ref, marker="another") for ref in ("rf_1", "rf_2")]
    candidates = tuple(
        Candidate(record=each, ours=True, fields={"marker": "differs"}) for each in records
    )
    both = Finding(verdict=Verdict.DUPLICATE, because="two", candidates=candidates)
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_0", by_ruling=True), both)
    assert isinstance(decision, OpenCase)
    assert decision.reason == "duplicate"


def test_of_several_that_all_came_back_none_stands() -> None:
    both = two(("rf_1", "failed", "m"), ("rf_2", "failed", "m"))
    decision = decided(view(states.SUCCEEDED, booked_ref="rf_1"), both)
    assert isinstance(decision, Settle)
    assert (decision.event, decision.record and decision.record.ref) == ("taken_back", "rf_1")
    assert decided(view(states.RETURNED), both) == Rest()
    one_paid = two(("rf_1", "failed", "m"), ("rf_2", "succeeded", "m"))
    for state, booked, finding in (
        (states.SUCCEEDED, None, both),
        (states.MISMATCHED, "rf_1", both),
        (states.SUCCEEDED, "rf_1", one_paid),
    ):
        asked = decided(view(state, booked_ref=booked), finding)
        assert isinstance(asked, OpenCase)
        assert asked.reason == "duplicate"
    assert decided(view(states.RETURNED), one_paid) == Settle("contradicted", one_paid.because)


def test_what_a_list_showed_is_looked_at_again_where_nothing_could_be_asked() -> None:
    assert isinstance(decided(view(states.FAILED, sighted=True), None), LookUpAgain)
