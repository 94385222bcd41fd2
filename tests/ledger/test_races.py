"""Two real processes at the same rows: whoever is first, the books come out right."""

from __future__ import annotations

from collections import Counter

import pytest

from refunds import dispatch
from refunds.domain import states
from refunds.models import Approval, Evidence, Operation, OrderMove, Payment, ProviderAccount
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.pgproxy import in_front
from tests.ledger.rows import held_equals_reservations, history, outcomes, state_of
from tests.ledger.side_by_side import approved, proposals, said
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    CLAIM,
    creates,
    ready,
    refunds,
    run,
    several,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def words(operation: Operation, *said: dict[str, str]) -> Counter[str]:
    return Counter(each[str(operation.pk)] for each in said)


def test_rule_04_two_leads_who_press_at_once_approve_once(cast: Cast, troupe: Troupe) -> None:
    operations = []
    for number in range(8):
        build.order(f"71{number:02}")
        operations.append(build.proposed(cast.omar, f"71{number:02}", 100 + number))
    leads = [troupe.actor("approve", operations, person=name) for name in ("ben", "cleo")]
    for lead in leads:
        lead.go()
    said = [lead.result() for lead in leads]
    for operation in operations:
        assert words(operation, *said) == {"authorized": 1, "already_decided": 1}
        assert state_of(operation) == states.AUTHORIZED
        assert Approval.objects.filter(operation=operation).count() == 1
        assert history(operation).count("approved") == 1


def test_rule_04_two_leads_cannot_both_approve_on_the_same_money(
    cast: Cast, troupe: Troupe
) -> None:
    pairs = []
    for number in range(6):
        ref = f"72{number:02}"
        build.order(ref, captured_minor=100)
        pairs.append([build.proposed(cast.omar, ref, amount_minor) for amount_minor in (60, 59)])
    first = troupe.actor("approve", [pair[0] for pair in pairs], person="ben")
    second = troupe.actor("approve", [pair[1] for pair in pairs], person="cleo")
    for lead in (first, second):
        lead.go()
    said = first.result() | second.result()
    for pair in pairs:
        came = Counter(said[str(each.pk)] for each in pair)
        assert came == {"authorized": 1, "balance": 1}
        authorized = [each for each in pair if state_of(each) == states.AUTHORIZED]
        assert len(authorized) == 1


def test_rule_04_eight_approved_with_room_for_three_hold_three_each_on_its_own_version(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    amounts = [1000 + number for number in range(8)]
    batch = proposals(provider, cast, *amounts)
    approved(cast.ben, *batch)
    # The room went without a word: no version moved, so no approval is stale by itself.
    run("UPDATE payment SET captured_minor = 3100")
    provider.fault("drop_after_commit", times=None)
    senders = [troupe.actor("send", batch[start::2]) for start in range(2)]
    for sender in senders:
        sender.go()
    for sender in senders:
        sender.result()
    said(*[each for each in batch if state_of(each) == states.AUTHORIZED])
    sent = [each for each in batch if state_of(each) == states.UNKNOWN]
    assert len(sent) == len(provider.refunds()) == 3
    assert Payment.objects.get().held_minor == sum(each.amount_minor for each in sent) <= 3100
    assert held_equals_reservations()
    moves = OrderMove.objects.filter(cause="reserved").values_list("operation_id", "version")
    assert dict(moves) == {each.pk: each.send_version for each in sent}
    assert len({each.send_version for each in sent}) == 3


def test_rule_13_two_lookups_at_once_settle_and_book_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 8)
    provider.fault("drop_after_commit", times=8)
    assert {dispatch.send(str(each.pk)) for each in operations} == {"unanswered"}
    lookers = [troupe.actor("look_up", operations) for _ in range(2)]
    for looker in lookers:
        looker.go()
    said = [looker.result() for looker in lookers]
    for operation in operations:
        assert words(operation, *said)["Settle"] == 1
        assert state_of(operation) == states.SUCCEEDED
        assert history(operation).count("found_succeeded") == 1
        payment = Payment.objects.get(pk=operation.payment_id)
        assert (payment.refunded_minor, payment.held_minor) == (operation.amount_minor, 0)
        # Both findings are kept, whichever decided.
        assert Evidence.objects.filter(operation=operation, kind="lookup").count() == 2


def test_rule_14_an_answer_and_the_end_of_its_lease_at_once_lose_nothing(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 4)
    senders = [
        troupe.actor("send", [each], stop_at=ANSWER_IN_HAND, limits={"lease_seconds": 0})
        for each in operations
    ]
    for sender in senders:
        sender.go()
    for sender in senders:
        sender.reaches(ANSWER_IN_HAND)
    sweeper = troupe.actor("end_leases", operations[:1])
    for actor in (*senders[:2], sweeper, *senders[2:]):
        actor.go()
    sweeper.result()
    for operation, sender in zip(operations, senders, strict=True):
        said = sender.result()
        last = history(operation)[-1]
        assert (said[str(operation.pk)], last) in (
            ("confirmed", "confirmed"),
            ("late", "lease_ended"),
        )
        assert outcomes(operation) == ["confirmed"]
        assert Evidence.objects.filter(operation=operation, kind="answer").count() == 1
    lookers = troupe.actor("look_up", operations)
    lookers.finish()
    for operation in operations:
        assert state_of(operation) == states.SUCCEEDED
        assert len(creates(provider, operation)) == len(refunds(provider, operation)) == 1
    assert held_equals_reservations()


def test_rule_36_a_second_send_and_a_taking_back_at_once_leave_one_reservation_or_none(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operations = several(provider, cast, 8)
    for operation in operations:
        provider.fault("rate_429")
        assert dispatch.send(str(operation.pk)) == "not_executed"
        ProviderAccount.objects.update(pause_kind="", not_executed_in_row=0)
    run("UPDATE operation SET not_before = NULL")
    sender = troupe.actor("send", operations)
    taker = troupe.actor("revoke", operations[::-1], person="ben")
    for actor in (sender, taker):
        actor.go()
    sent, taken = sender.result(), taker.result()
    for operation in operations:
        pk = str(operation.pk)
        operation.refresh_from_db()
        released = operation.order.moves.filter(cause="released").count()
        reserved = operation.order.moves.filter(cause="reserved").count()
        if taken[pk] == states.AWAITING_APPROVAL:
            assert (sent[pk], released, reserved) == ("gone", 1, 1)
            assert refunds(provider, operation) == []
        else:
            assert (taken[pk], sent[pk]) == ("already_sent", "confirmed")
            assert (released, reserved) == (0, 1)
            assert len(refunds(provider, operation)) == 1
    assert held_equals_reservations()
    assert sum(Payment.objects.values_list("held_minor", flat=True)) == 0


@pytest.mark.parametrize("round_", range(3))
def test_rule_02_a_claim_that_is_cut_while_another_process_claims_sends_once(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, round_: int
) -> None:
    operation = ready(provider, cast)
    with in_front(CLAIM, "cut_before" if round_ % 2 else "cut_after") as proxy:
        cut = troupe.actor("send", [operation], host=proxy.host)
        other = troupe.actor("send", [operation])
        for actor in (cut, other):
            actor.go()
        said = cut.result() | {"other": other.result()[str(operation.pk)]}
    executed = len(refunds(provider, operation))
    assert executed == (1 if said["other"] == "confirmed" else 0)
    assert len(creates(provider)) == executed
    assert said[str(operation.pk)] in ("CommitUnknown", "gone", "waiting")
    assert len(outcomes(operation)) <= 1
