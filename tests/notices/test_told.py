"""What verified notices add up to, without a database."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciliation.matching import Finding, Verdict
from reconciliation.told import of_payment, weigh
from refunds.domain.outcome import Expected, RefundRecord
from refunds.providers.plain import WORDS

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
EXPECTED = Expected(marker="m-1", payment_ref="pi_1", amount_minor=7900, currency="USD")
OURS = RefundRecord(
    ref="rf_1",
    payment_ref="pi_1",
    amount_minor=7900,
    currency="USD",
    provider_status="succeeded",
    marker="m-1",
    created_at=NOON,
)
PENDING = replace(OURS, provider_status="pending")
FAILED = replace(OURS, provider_status="failed")


def weighed(*records: RefundRecord) -> Finding:
    return weigh(records, EXPECTED, words=WORDS, known_refs=frozenset(), first_recorded_at=NOON)


def test_one_notice_of_ours_is_a_match() -> None:
    assert weighed(OURS).verdict is Verdict.MATCH


def test_nothing_and_strangers_never_add_up_to_absence() -> None:
    stranger = replace(OURS, ref="rf_2", marker=None)
    for records in ([], [stranger], [stranger, replace(stranger, ref="rf_3")]):
        found = weighed(*records)
        assert found.verdict is Verdict.CANNOT_TELL
        assert "nothing about what does not" in found.because


@pytest.mark.parametrize(
    "records", list(itertools.permutations([PENDING, OURS, replace(PENDING, created_at=None)]))
)
def test_the_end_outweighs_what_was_on_the_way_in_every_order(
    records: tuple[RefundRecord, ...],
) -> None:
    found = weighed(*records)
    assert found.verdict is Verdict.MATCH
    assert found.record is not None
    assert found.record.provider_status == "succeeded"


@pytest.mark.parametrize(
    "other",
    [
        FAILED,
        replace(OURS, amount_minor=100),
        replace(OURS, currency="EUR"),
        replace(OURS, marker="m-2"),
        replace(OURS, payment_ref="pi_2"),
        replace(OURS, provider_status="a-word-of-theirs"),
    ],
)
def test_two_stories_of_one_refund_differ_in_both_orders(other: RefundRecord) -> None:
    for records in ((OURS, other), (other, OURS), (PENDING, OURS, other)):
        found = weighed(*records)
        assert found.verdict is Verdict.DIFFERS
        assert "do not agree" in found.because


@pytest.mark.parametrize(
    "lacking",
    [
        replace(OURS, amount_minor=None),
        replace(OURS, currency=None),
        replace(OURS, ref="pi_1"),
    ],
)
def test_a_notice_that_lacks_what_would_prove_it_is_none(lacking: RefundRecord) -> None:
    assert weighed(lacking).verdict is Verdict.CANNOT_TELL
    assert weighed(lacking, OURS).verdict is Verdict.MATCH


def test_two_refunds_with_our_marker_are_a_duplicate() -> None:
    assert weighed(OURS, replace(OURS, ref="rf_2")).verdict is Verdict.DUPLICATE


def test_a_payment_is_compared_under_the_name_that_we_have_for_it() -> None:
    by_charge = replace(OURS, payment_ref="pi_other")
    assert of_payment(by_charge, "ch_1", ["pi_other", "ch_1"]).payment_ref == "ch_1"
    assert of_payment(by_charge, "ch_1", ["pi_other"]).payment_ref == "pi_other"
