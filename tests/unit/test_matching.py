"""Whose refund is it? Marker and reference decide; amount, currency and time only contradict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciliation.matching import Finding, Verdict, match
from refunds.domain.outcome import Expected, RefundRecord

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
EXPECTED = Expected(marker=MARKER, payment_ref="pi_4821", amount_minor=7900, currency="USD")
OURS = RefundRecord(
    ref="rf_0010",
    payment_ref="pi_4821",
    amount_minor=7900,
    currency="USD",
    provider_status="succeeded",
    marker=MARKER,
    created_at=NOON + timedelta(seconds=1),
)
STRANGERS = replace(OURS, ref="rf_0009", marker=None)


def matched(*records: RefundRecord, complete: bool = True, known: str | None = None) -> Finding:
    return match(
        records,
        EXPECTED,
        complete=complete,
        why_incomplete="" if complete else "HTTP 503",
        known_refs=frozenset({known} if known else ()),
        first_recorded_at=NOON,
    )


def test_our_marker_with_every_field_equal_is_a_match() -> None:
    finding = matched(STRANGERS, OURS)
    assert finding.verdict is Verdict.MATCH
    assert finding.record is OURS
    assert [each.ours for each in finding.candidates] == [False, True]


@pytest.mark.parametrize("complete", [True, False])
def test_a_match_needs_no_complete_list(complete: bool) -> None:
    assert matched(OURS, complete=complete).verdict is Verdict.MATCH


def test_an_equal_refund_of_somebody_else_is_not_ours() -> None:
    """Same payment, amount, currency and time without our marker: absent, never a match (rule 20)."""
    finding = matched(STRANGERS)
    assert finding.verdict is Verdict.ABSENT
    assert finding.record is None
    assert "1 of other origin" in finding.because
    other = matched(replace(STRANGERS, marker="0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6b"))
    assert other.verdict is Verdict.ABSENT


def test_an_empty_list_is_absent_only_when_it_is_complete() -> None:
    assert matched().verdict is Verdict.ABSENT
    assert matched(complete=False).verdict is Verdict.CANNOT_TELL
    assert matched(STRANGERS, complete=False).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("amount", {"amount_minor": 7901}),
        ("amount", {"amount_minor": None}),
        ("currency", {"currency": "EUR"}),
        ("currency", {"currency": None}),
        ("payment", {"payment_ref": "pi_4822"}),
        ("created", {"created_at": NOON - timedelta(seconds=31)}),
    ],
)
def test_ours_with_another_field_differs_and_names_it(field: str, changes: dict[str, Any]) -> None:
    finding = matched(replace(OURS, **changes))
    assert finding.verdict is Verdict.DIFFERS
    assert field in finding.because
    assert finding.record is not None


@pytest.mark.parametrize("created_at", [None, NOON - timedelta(seconds=30), NOON])
def test_a_clock_a_little_behind_ours_is_no_difference(created_at: datetime | None) -> None:
    assert matched(replace(OURS, created_at=created_at)).verdict is Verdict.MATCH


@pytest.mark.parametrize("complete", [True, False])
def test_two_of_ours_are_a_duplicate_whatever_else(complete: bool) -> None:
    finding = matched(OURS, replace(OURS, ref="rf_0011"), complete=complete)
    assert finding.verdict is Verdict.DUPLICATE
    assert finding.record is None
    assert "rf_0010, rf_0011" in finding.because


def test_a_reference_we_hold_makes_it_ours_without_the_marker() -> None:
    finding = matched(STRANGERS, known="rf_0009")
    assert finding.verdict is Verdict.MATCH
    assert finding.record is STRANGERS


def test_a_reference_we_hold_with_anothers_marker_differs() -> None:
    finding = matched(replace(OURS, marker="another"), known="rf_0010")
    assert finding.verdict is Verdict.DIFFERS
    assert "marker" in finding.because


def test_our_marker_beside_the_reference_we_hold_is_a_duplicate() -> None:
    finding = matched(OURS, replace(STRANGERS, ref="rf_0011"), known="rf_0011")
    assert finding.verdict is Verdict.DUPLICATE


def test_a_finding_is_stored_with_every_candidate_field_by_field() -> None:
    [facts] = [each.facts() for each in matched(replace(OURS, amount_minor=1)).candidates]
    assert facts["ours"] is True
    assert facts["fields"] == {
        "marker": "match",
        "payment": "match",
        "amount": "differs",
        "currency": "match",
        "created": "match",
    }


@pytest.mark.parametrize(
    ("changes", "taken", "verdict"),
    [
        ({}, (), Verdict.CANNOT_TELL),
        ({"amount_minor": None}, (), Verdict.CANNOT_TELL),  # it may be: it does not say otherwise
        ({"amount_minor": 7901}, (), Verdict.ABSENT),
        ({"currency": "EUR"}, (), Verdict.ABSENT),
        ({"payment_ref": "pi_4822"}, (), Verdict.ABSENT),
        ({"marker": "another"}, (), Verdict.ABSENT),
        ({}, ("rf_0009",), Verdict.ABSENT),
    ],
)
def test_where_no_marker_comes_back_an_equal_refund_of_nobody_elses_may_be_ours(
    changes: dict[str, Any], taken: tuple[str, ...], verdict: Verdict
) -> None:
    finding = match(
        [replace(STRANGERS, **changes)],
        EXPECTED,
        complete=True,
        why_incomplete="",
        known_refs=frozenset(),
        first_recorded_at=NOON,
        others_refs=frozenset(taken),
    )
    assert finding.verdict is verdict
    assert ("rf_0009" in finding.because) is (verdict is Verdict.CANNOT_TELL)
    assert finding.complete is (verdict is Verdict.ABSENT)


def test_a_refund_that_is_not_ours_is_compared_without_its_time_and_lacks_the_marker() -> None:
    early = replace(STRANGERS, created_at=NOON - timedelta(days=1))
    [candidate] = matched(early).candidates
    assert candidate.fields == {
        "marker": "missing",
        "payment": "match",
        "amount": "match",
        "currency": "match",
    }


@pytest.mark.parametrize(
    ("created_at", "stored"), [(NOON, "2026-11-29T12:00:00+00:00"), (None, None)]
)
def test_when_it_was_made_is_stored_with_the_finding(
    created_at: datetime | None, stored: str | None
) -> None:
    [candidate] = matched(replace(OURS, created_at=created_at)).candidates
    assert candidate.facts()["created_at"] == stored


def test_only_a_whole_list_makes_a_finding_complete() -> None:
    assert Finding(verdict=Verdict.ABSENT, because="").complete is False
    for records in ((), (OURS,), (OURS, replace(OURS, ref="rf_0011"))):
        assert matched(*records).complete is True
        assert matched(*records, complete=False).complete is False
