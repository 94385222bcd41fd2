"""Rules 45 and 46: which moves of the order an approval forgives, and which it never does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from refunds import approvals, freezing, withdrawal
from refunds.domain import states
from refunds.ledger import RECONCILER, bump
from refunds.models import Operation, Order, OrderMove, Payment
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import held_equals_reservations, state_of
from tests.ledger.side_by_side import LAPSED, PARCELS, approved, ended_by, proposals, said
from tests.ledger.stage import creates, make_due, run
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

# Rule 45: by cause, identity and amount together


def test_rule_45_three_parcels_of_one_order_are_three_refunds_and_none_is_stale(
    provider: SandboxProcess, cast: Cast
) -> None:
    parcels = proposals(provider, cast)
    approved(cast.ben, *parcels)
    assert said(*parcels) == ["confirmed"] * 3
    assert sorted(each["amount_minor"] for each in provider.refunds()) == sorted(PARCELS)
    assert Payment.objects.get().refunded_minor == sum(PARCELS)
    assert OrderMove.objects.filter(cause="reserved").count() == 3
    for parcel in parcels:
        parcel.refresh_from_db()
        assert (parcel.state, parcel.round) == (states.SUCCEEDED, 1)


def test_rule_45_three_parcels_sent_by_three_processes_at_once_are_three_refunds(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    parcels = proposals(provider, cast)
    approved(cast.ben, *parcels)
    senders = [troupe.actor("send", [each]) for each in parcels]
    for sender in senders:
        sender.go()
    for sender in senders:
        sender.result()
    # Who stood behind two others and read a log too old for its lock waits for the next sweep.
    waiting = [each for each in parcels if state_of(each) == states.AUTHORIZED]
    assert said(*waiting) == ["confirmed"] * len(waiting)
    assert sorted(each["amount_minor"] for each in provider.refunds()) == sorted(PARCELS)
    assert not Operation.objects.exclude(round=1).exists()
    assert held_equals_reservations()


def test_rule_45_a_refund_that_nobody_was_shown_ends_the_approval(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, _ = proposals(provider, cast)
    approved(cast.ben, first)
    unshown = build.authorized(cast.omar, cast.ben, amount_minor=300)
    approved(cast.ben, second)
    assert said(unshown, second, first) == ["confirmed", "confirmed", "lapsed"]
    assert ended_by(first) == LAPSED
    assert len(provider.refunds()) == 2


def listed_at(operation: Operation, cast: Cast, *listed: tuple[Operation, int]) -> None:
    """Approved by a page that showed siblings at these amounts, past the verb that compares."""
    run(
        "INSERT INTO approval (operation_id, round, approver_id, as_role, fingerprint,"
        " order_version, shown, shown_operations, shown_amounts_minor, asked_by_approver,"
        " separate_refund_confirmed, policy_version, expires_at)"
        " SELECT o.id, o.round, %s, 'lead', o.fingerprint, r.version, '{}', %s, %s, false, false,"
        " o.policy_version, o.expires_at"
        " FROM operation o JOIN orders r ON r.id = o.order_id WHERE o.id = %s",
        cast.ben.pk,
        [sibling.pk for sibling, _ in listed],
        [amount_minor for _, amount_minor in listed],
        operation.pk,
    )
    run(
        "WITH moved AS (UPDATE operation o SET state = 'authorized', version = o.version + 1,"
        " send_version = r.version FROM orders r WHERE o.id = %s AND r.id = o.order_id"
        " RETURNING o.id, o.version)"
        " INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor)"
        " SELECT id, version, 'approved', 'awaiting_approval', 'authorized', 'approvers', 'test'"
        " FROM moved",
        operation.pk,
    )


@pytest.mark.parametrize(("shown_minor", "word"), [(1850, "confirmed"), (1849, "lapsed")])
def test_rule_45_a_sibling_is_forgiven_at_the_amount_of_the_page_only(
    provider: SandboxProcess, cast: Cast, shown_minor: int, word: str
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    listed_at(first, cast, (sibling, shown_minor))
    approved(cast.ben, sibling)
    assert said(sibling, first) == ["confirmed", word]


def test_rule_45_amounts_belong_to_their_own_refund(provider: SandboxProcess, cast: Cast) -> None:
    """A list of 18.50 and 7.25 does not forgive the other way round, though the sums agree."""
    first, second, third = proposals(provider, cast)
    listed_at(first, cast, (second, third.amount_minor), (third, second.amount_minor))
    approved(cast.ben, second, third)
    assert said(second, third, first) == ["confirmed", "confirmed", "lapsed"]


def test_rule_45_a_refund_made_elsewhere_does_not_hide_behind_a_sibling_of_its_amount(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first, second, third)
    withdrawal.withdraw(second.pk, by=Caller(person=cast.omar))
    build.external_refund("4821", second.amount_minor)
    assert said(first, third) == ["lapsed", "lapsed"]
    assert (ended_by(first), ended_by(third)) == (LAPSED, LAPSED)
    assert creates(provider) == []


def test_rule_45_a_fourth_refund_from_outside_ends_what_is_still_approved(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first, second, third)
    assert said(first) == ["confirmed"]
    build.external_refund("4821", 500)
    assert said(second, third) == ["lapsed", "lapsed"]
    assert [each["amount_minor"] for each in provider.refunds()] == [1200]


# Rule 46: what is never forgiven


def released(first: Operation, sibling: Operation, cast: Cast) -> None:
    withdrawal.withdraw(sibling.pk, by=Caller(person=cast.omar))


def frozen_and_lifted(first: Operation, sibling: Operation, cast: Cast) -> None:
    for verb in (freezing.freeze, freezing.unfreeze):
        version = Order.objects.get().version
        verb("4821", cast.ines, reason="a parcel was in doubt", version=version)


NEVER: dict[str, tuple[str, Callable[[Operation, Operation, Cast], object]]] = {
    "the release of a sibling": ("released", released),
    "a refund made elsewhere": ("external", lambda o, s, c: build.external_refund("4821", 1)),
    "an edit of the feed": ("feed", lambda o, s, c: build.order(captured_minor=90_001)),
    "a dispute that is over": (
        "feed",
        lambda o, s, c: [
            build.order(captured_minor=90_000, state=state) for state in ("disputed", "captured")
        ],
    ),
    "a freeze that was lifted": ("unfrozen", frozen_and_lifted),
}


@pytest.mark.parametrize("move", sorted(NEVER))
def test_rule_46_what_is_no_reservation_is_never_forgiven(
    provider: SandboxProcess, cast: Cast, move: str
) -> None:
    cause, happens = NEVER[move]
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, sibling)
    # Turned away: the sibling keeps its reservation, and the page of the first shows it so.
    provider.fault("rate_429")
    assert said(sibling) == ["not_executed"]
    approved(cast.ben, first)
    happens(first, sibling, cast)
    assert OrderMove.objects.order_by("-version")[0].cause == cause
    assert said(first) == ["lapsed"]
    assert ended_by(first) == LAPSED
    assert len(creates(provider)) == 1


@pytest.mark.parametrize(
    "cause",
    [
        *("released", "external", "taken_back", "contradicted", "difference", "dispute"),
        *("capture_reversed", "feed", "frozen", "unfrozen"),
    ],
)
def test_rule_46_no_other_cause_is_forgiven_even_of_a_sibling_at_its_amount(
    provider: SandboxProcess, cast: Cast, cause: str
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first)
    with transaction.atomic():
        order = Order.objects.select_for_update().get()
        bump(order, cause, by=RECONCILER, operation=sibling, amount_minor=1850)
    assert said(first) == ["lapsed"]
    assert creates(provider) == []


def test_rule_46_a_sibling_that_gave_its_money_back_and_took_it_again_is_not_forgiven(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, sibling)
    provider.fault("rate_429")
    assert said(sibling) == ["not_executed"]
    sibling.refresh_from_db()
    approvals.revoke(sibling.pk, cast.ben, version=sibling.version)
    approved(cast.ben, sibling)
    make_due(sibling)
    assert said(sibling, first) == ["confirmed", "lapsed"]
