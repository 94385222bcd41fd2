"""Rules 9 to 12: what an answer proves, and what stays ambiguous for good."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import OrderMove, Payment, Reservation
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import (
    held_equals_reservations,
    outcomes,
    resubmitted,
    sent,
    state_of,
    the_answer,
)
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    creates,
    lease_ends,
    ready,
    refunds,
    run,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("fault", "options", "executed"),
    [
        ("drop_before_commit", {}, 0),
        ("drop_after_commit", {}, 1),
        ("reset_before", {}, 0),
        ("error_after_commit", {}, 1),
        ("truncated", {}, 1),
        ("html_200", {}, 1),
        ("bad_json", {}, 1),
        ("huge_body", {"bytes": 300 * 1024}, 1),
        ("wrong_currency", {}, 1),
        ("redirect", {"status": 307}, 1),
    ],
)
def test_rule_09_what_is_not_on_the_list_is_unknown_and_is_found_out(
    provider: SandboxProcess, cast: Cast, fault: str, options: dict[str, Any], executed: int
) -> None:
    operation = ready(provider, cast)
    provider.fault(fault, **options)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    assert Payment.objects.get().held_minor == 7900
    assert the_answer(operation).facts["outcome"] == "unanswered"
    assert len(refunds(provider, operation)) == executed
    reconciler.look_up(operation.pk)
    assert state_of(operation) == (states.SUCCEEDED if executed else states.UNKNOWN)
    assert len(creates(provider)) == 1
    assert held_equals_reservations()


def test_rule_09_another_amount_than_ours_is_for_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.fault("wrong_amount", amount_minor=7901)
    provider.fault("wrong_amount", on="list", amount_minor=7901)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert the_answer(operation).facts["amount_minor"] == 7901
    assert reconciler.look_up(operation.pk) == "OpenCase"
    assert (state_of(operation), operation.halted) == (states.UNKNOWN, True)
    assert operation.cases.get().reasons == ["mismatch"]


def test_rule_09_a_listed_refusal_ends_it_and_gives_the_money_back(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.configure("plain-main", reasons_accepted=[])
    assert dispatch.send(str(operation.pk)) == "refused"
    assert (state_of(operation), operation.blocks_equivalent) == (states.FAILED, False)
    assert Payment.objects.get().held_minor == 0
    assert Reservation.objects.get().state == "released"
    assert OrderMove.objects.order_by("-version")[0].cause == "released"
    assert refunds(provider, operation) == []


def test_rule_09_no_connection_is_not_sent_and_may_be_sent_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.fault("refuse_connect", seconds=60)
    assert dispatch.send(str(operation.pk)) == "not_executed"
    assert outcomes(operation) == ["not_sent"]
    assert state_of(operation) == states.AUTHORIZED
    provider.clear_faults()
    run("UPDATE operation SET not_before = NULL")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(creates(provider)) == len(refunds(provider, operation)) == 1


# Rule 10: what our own first request may have caused is no refusal of the second


@pytest.mark.parametrize("fault", ["already_refunded", "busy_409", "duplicate_429"])
@pytest.mark.parametrize("account", ["plain-nokeys", "stripe-main"])
def test_rule_10_a_copy_that_is_turned_down_because_the_first_was_paid_is_unknown(
    provider: SandboxProcess, cast: Cast, account: str, fault: str
) -> None:
    operation = ready(provider, cast, account=account)
    provider.fault("drop_after_commit", account=account)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    provider.fault(fault, account=account)
    assert sent(resubmitted(operation)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    assert outcomes(operation) == ["unanswered", "unanswered"]
    assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.SUCCEEDED
    assert len(refunds(provider, operation)) == 1


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_rule_10_a_404_or_too_little_left_is_unknown(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = ready(provider, cast, account=account)
    fields = {"account": account, "payment": "pi_4821", "amount_minor": 9000}
    provider.control("POST", "/external_refund", fields)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    provider.reset()
    unheard_of = ready(provider, cast, "4822", account=account, amount_minor=100)
    provider.reset()
    assert dispatch.send(str(unheard_of.pk)) == "unanswered"
    assert state_of(unheard_of) == states.UNKNOWN


# Rules 11 and 12: a refusal beside an attempt that may have paid; ambiguous stays ambiguous


def test_rule_11_a_refusal_does_not_end_what_an_earlier_attempt_may_still_pay(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    provider.fault("land_late", account="plain-nokeys", seconds=1.5)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    provider.configure("plain-nokeys", reasons_accepted=[])
    claim = resubmitted(operation)
    assert sent(claim) == "unanswered"
    assert outcomes(operation) == ["unanswered", "refused"]
    assert (state_of(operation), refunds(provider, operation)) == (states.UNKNOWN, [])
    assert reconciler.look_up(operation.pk) == "LookUpAgain"
    # Now the first one lands.
    provider.configure("plain-nokeys", reasons_accepted=None)
    provider.advance(1.6)
    assert len(refunds(provider, operation)) == 1
    assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.SUCCEEDED
    assert held_equals_reservations()


def test_rule_11_a_refusal_ends_it_when_every_other_attempt_has_a_definite_answer(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    provider.fault("rate_429", account="plain-nokeys")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    run("UPDATE operation SET not_before = NULL")
    provider.configure("plain-nokeys", reasons_accepted=[])
    assert dispatch.send(str(operation.pk)) == "refused"
    assert outcomes(operation) == ["turned_away", "refused"]
    assert state_of(operation) == states.FAILED


@pytest.mark.parametrize("ended_by", ["its own answer", "its lease"])
def test_rule_12_an_ambiguous_attempt_stays_ambiguous_whatever_another_one_says(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, ended_by: str
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    if ended_by == "its own answer":
        provider.fault("drop_after_commit", account="plain-nokeys")
        assert dispatch.send(str(operation.pk)) == "unanswered"
        first = "unanswered"
    else:
        sender = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND)
        sender.go()
        sender.reaches(ANSWER_IN_HAND)
        sender.kill()
        lease_ends(operation)
        first = None
    provider.fault("refuse_connect", account="plain-nokeys", seconds=60)
    for no in (2, 3):
        assert sent(resubmitted(operation)) == "unanswered"
        assert outcomes(operation) == [first, *["not_sent"] * (no - 1)]
        assert state_of(operation) == states.UNKNOWN
    provider.clear_faults()
    assert reconciler.look_up(operation.pk) == "Settle"
    assert len(refunds(provider, operation)) == 1
