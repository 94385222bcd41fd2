"""Rules 38 and 39: an approval is taken back before the claim, or not at all."""

from __future__ import annotations

import pytest
from django.db import transaction

from refunds import approvals, dispatch, withdrawal
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation, Payment, Person
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import everything, held_equals_reservations, history, outcomes, state_of
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    BEFORE_THE_CALL,
    CONNECTED,
    creates,
    lease_ends,
    ready,
    refunds,
    run,
    several,
    somebody_waits_for_a_lock,
    tries_for_a_lock,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def not_taken_back(operation: Operation, person: Person) -> None:
    """The page is told so, and nothing differs."""
    operation.refresh_from_db()
    before = everything()
    with pytest.raises(Refusal) as late:
        approvals.revoke(operation.pk, person, version=operation.version)
    assert (late.value.code, late.value.status) == ("already_sent", 409)
    assert late.value.detail.startswith("Not taken back")
    assert everything() == before


def test_rule_38_taken_back_before_the_claim_is_taken_back(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    assert (state_of(operation), operation.round) == (states.AWAITING_APPROVAL, 2)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert creates(provider) == []
    # The approval of the first round counts no more.
    assert approvals.approve(operation.pk, cast.cleo, build.shown(operation)).complete
    assert dispatch.send(str(operation.pk)) == "confirmed"


def test_rule_38_an_old_page_takes_nothing_back(provider: SandboxProcess, cast: Cast) -> None:
    operation = ready(provider, cast)
    drawn = operation.version
    approvals.revoke(operation.pk, cast.ben, version=drawn)
    assert approvals.approve(operation.pk, cast.cleo, build.shown(operation)).complete
    with pytest.raises(Refusal) as old:
        approvals.revoke(operation.pk, cast.ben, version=drawn)
    assert (old.value.code, old.value.status) == ("stale_page", 409)
    assert state_of(operation) == states.AUTHORIZED


def test_rule_38_a_claim_that_waited_for_the_taking_back_sends_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation])
    with transaction.atomic():
        approvals.revoke(operation.pk, cast.ben, version=operation.version)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(operation.pk): "gone"}
    assert creates(provider) == []
    assert state_of(operation) == states.AWAITING_APPROVAL
    assert outcomes(operation) == []
    assert Payment.objects.get().held_minor == 0


def test_rule_38_a_taking_back_that_waited_for_the_claim_is_told_so(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """Read before and written after it would say "taken back" of money that moves."""
    operation = ready(provider, cast)
    provider.fault("hold")
    sender = troupe.actor("send", [operation])
    taker = troupe.actor("revoke", [operation], person="ben")
    with transaction.atomic():
        # The claim has the order and waits for the payment; the other stands behind the order.
        Payment.objects.select_for_update().get()
        sender.go()
        somebody_waits_for_a_lock()
        taker.go()
        tries_for_a_lock(2)
    assert taker.result() == {str(operation.pk): "already_sent"}
    provider.wait_for_hold(60)
    provider.release()
    assert sender.result() == {str(operation.pk): "confirmed"}
    assert state_of(operation) == states.SUCCEEDED
    assert len(refunds(provider, operation)) == 1


def test_rule_38_of_sending_and_taking_back_at_once_exactly_one_happens(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 16)
    # They come from both ends, so that they meet in the middle whoever is quicker.
    sender = troupe.actor("send", operations)
    taker = troupe.actor("revoke", operations[::-1], person="ben")
    for actor in (sender, taker):
        actor.go()
    sent, taken = sender.result(), taker.result()
    for operation in operations:
        pk = str(operation.pk)
        state = state_of(operation)
        if taken[pk] == states.AWAITING_APPROVAL:
            assert sent[pk] == "gone"
            assert state == states.AWAITING_APPROVAL
            assert creates(provider, operation) == []
        else:
            assert (taken[pk], sent[pk]) == ("already_sent", "confirmed")
            assert state == states.SUCCEEDED
            assert len(refunds(provider, operation)) == 1
    assert held_equals_reservations()


@pytest.mark.parametrize(
    "point",
    [BEFORE_THE_CALL, CONNECTED, ANSWER_IN_HAND],
    ids=["before_the_connection", "before_the_first_byte", "with_the_answer_in_hand"],
)
def test_rule_39_nothing_is_taken_back_from_the_claim_on(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, point: str
) -> None:
    """Also not before the first byte: the sender may write it in the next moment."""
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=point)
    sender.go()
    sender.reaches(point)
    not_taken_back(operation, cast.ben)
    with pytest.raises(Refusal) as late:
        withdrawal.withdraw(operation.pk, by=Caller(person=cast.ben))
    assert late.value.code == "already_sent"
    assert sender.finish() == {str(operation.pk): "confirmed"}
    not_taken_back(operation, cast.ben)
    assert "approval_revoked" not in history(operation)


def test_rule_39_nothing_is_taken_back_while_it_is_unknown(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast)
    sender = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL)
    sender.go()
    sender.reaches(BEFORE_THE_CALL)
    sender.kill()
    lease_ends(operation)
    not_taken_back(operation, cast.ben)
    assert Payment.objects.get().held_minor == 7900


def test_rule_39_the_time_to_change_ones_mind_lies_before_the_claim(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    run("UPDATE operation SET not_before = clock_timestamp() + interval '10 seconds'")
    assert dispatch.send(str(operation.pk)) == "waiting"
    operation.refresh_from_db()
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    assert creates(provider) == []
