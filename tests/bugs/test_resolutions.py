"""Public reports about what people decided by hand: without proof, alone, or without a trail."""

from __future__ import annotations

import pytest
from django.db import IntegrityError

from reconciliation.models import Case, CaseEvent, Ruling
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Payment
from tests.bugs.test_late_results import history_unwritable
from tests.cast import Cast
from tests.ledger.rulings import (
    REASON,
    attached,
    ruled,
    screen,
    signed,
    told,
    unknown_with_case,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def blind(provider: SandboxProcess, cast: Cast) -> Case:
    """Paid, and nothing but a person can find out."""
    return unknown_with_case(provider, cast, account="plain-blind", fault="drop_after_commit")


def _state(case: Case) -> str:
    assert case.operation is not None
    case.operation.refresh_from_db()
    return case.operation.state


def test_b142_a_resolution_whose_trail_cannot_be_written_is_no_resolution(
    provider: SandboxProcess, cast: Cast, blind: Case
) -> None:
    attached(blind, cast.omar)
    [refund] = provider.refunds("plain-blind")
    first = ruled(blind, cast.omar, "happened", testimony=told(refund["id"]))
    with (
        history_unwritable("event", "ruled_happened"),
        pytest.raises(IntegrityError, match="out of order"),
    ):
        signed(first, cast.ines)
    assert _state(blind) == states.UNKNOWN
    assert not hasattr(Ruling.objects.get(), "end")
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor) == (0, 4000)
    signed(first, cast.ines)
    assert _state(blind) == states.SUCCEEDED


def test_b144_a_refund_made_by_hand_is_recorded_by_two_people_with_its_reference_and_counts(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast, account="plain-blind")  # ours never arrived
    provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-blind", "payment": "pi_4821", "amount_minor": 4000},
    )
    [by_hand] = provider.refunds("plain-blind")
    attached(case, cast.omar)
    signed(ruled(case, cast.omar, "happened", testimony=told(by_hand["id"])), cast.ines)
    assert _state(case) == states.SUCCEEDED
    payment = Payment.objects.get()
    assert payment.refunded_minor == sum(
        each["amount_minor"] for each in provider.refunds("plain-blind")
    )
    assert payment.provider_refunds.get().ref == by_hand["id"]
    said = CaseEvent.objects.get(kind="ruled").detail
    assert (said["choice"], said["reason"]) == ("happened", REASON)
    assert Ruling.objects.get().end.by == cast.ines


@pytest.mark.parametrize("reason", ["", "   ", "done", "."])
def test_b146_an_unknown_is_not_tidied_away_with_an_empty_proof(
    cast: Cast, blind: Case, reason: str
) -> None:
    attached(blind, cast.omar)
    with pytest.raises(Refusal) as no:
        ruled(
            blind,
            cast.omar,
            "happened",
            testimony=told("rf_1"),
            screen={**screen(blind), "reason": reason},
        )
    assert no.value.code == "reason_too_short"
    assert _state(blind) == states.UNKNOWN


def test_b146_made_up_references_and_copied_texts_are_no_proof(
    provider: SandboxProcess, cast: Cast
) -> None:
    case = unknown_with_case(provider, cast)
    with pytest.raises(Refusal, match="our own lookup shows"):
        ruled(case, cast.omar, "happened", ref="rf_made_up")
    with pytest.raises(Refusal, match="our own lookup shows"):
        ruled(case, cast.omar, "happened", testimony=told("rf_made_up"))
    blind = unknown_with_case(provider, cast, account="plain-blind", ref="4822", amount_minor=4100)
    with pytest.raises(Refusal, match="statement"):
        ruled(blind, cast.omar, "happened", testimony=told("rf_made_up", 4100))
    assert not Ruling.objects.exists()
    assert provider.refunds() == []
