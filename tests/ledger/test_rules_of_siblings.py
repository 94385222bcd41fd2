"""Rules 45 to 48: refunds of one order that were approved side by side do not end one another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connection, transaction

from refunds import approvals, dispatch, freezing, policies, withdrawal
from refunds.consent import Shown
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.fingerprint import canonical
from refunds.ledger import RECONCILER, Sibling, bump
from refunds.ledger.claim import CLAIM
from refunds.models import Approval, Operation, Order, OrderMove, Payment
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import everything, held, held_equals_reservations, state_of
from tests.ledger.stage import (
    creates,
    make_due,
    refunds,
    run,
    somebody_waits_for_a_lock,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

PARCELS = (1200, 1850, 725)


def proposals(provider: SandboxProcess, cast: Cast, *amounts: int) -> list[Operation]:
    """Proposals of one order, none of them decided."""
    provider.payment(captured_minor=90_000)
    build.order(captured_minor=90_000)
    return [build.proposed(cast.omar, amount_minor=minor) for minor in amounts or PARCELS]


def approved(by: Any, *operations: Operation) -> None:
    """Each approved on the picture of now, its siblings with it."""
    for operation in operations:
        approvals.approve(operation.pk, by, build.shown(operation, tick=True))


def said(*operations: Operation) -> list[str]:
    """What sending each of them led to, one after the other."""
    return [dispatch.send(str(operation.pk)) for operation in operations]


def ended_by(operation: Operation) -> tuple[str, str]:
    operation.refresh_from_db()
    return operation.state, operation.stale_cause


LAPSED = (states.AWAITING_APPROVAL, "order_changed")


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


# Rule 47: the list is the page's list


def refused(operation: Operation, by: Any, shown: Shown) -> Refusal:
    before = everything()
    with pytest.raises(Refusal) as refusal:
        approvals.approve(operation.pk, by, shown)
    assert everything() == before
    return refusal.value


def test_rule_47_a_newcomer_after_the_page_was_drawn_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, _ = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    newcomer = build.proposed(cast.omar, amount_minor=300)
    refusal = refused(first, cast.ben, page)
    assert (refusal.code, refusal.status) == ("stale_page", 409)
    assert "The other refunds of order 4821 changed" in refusal.detail
    withdrawal.withdraw(newcomer.pk, by=Caller(person=cast.omar))
    approvals.approve(first.pk, cast.ben, page)


def test_rule_47_a_sibling_that_ended_after_the_page_was_drawn_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    withdrawal.withdraw(sibling.pk, by=Caller(person=cast.omar))
    assert refused(first, cast.ben, page).code == "stale_page"


def test_rule_47_a_page_that_lists_another_amount_refuses_the_press(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    page = build.shown(first)
    [listed] = page.siblings
    assert listed == Sibling(sibling.pk, 1850)
    other = Shown(
        fingerprint=page.fingerprint,
        order_version=page.order_version,
        siblings=(Sibling(sibling.pk, 1851),),
    )
    assert refused(first, cast.ben, other).code == "stale_page"


def test_rule_47_the_approval_keeps_the_list_of_its_page(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first)
    kept = Approval.objects.get(operation=first)
    assert dict(zip(kept.shown_operations, kept.shown_amounts_minor, strict=True)) == {
        second.pk: 1850,
        third.pk: 725,
    }


def test_rule_47_that_a_sibling_was_approved_meanwhile_is_no_news(
    provider: SandboxProcess, cast: Cast
) -> None:
    parcels = proposals(provider, cast)
    pages = [build.shown(each) for each in parcels]
    for parcel, page in zip(parcels, pages, strict=True):
        approvals.approve(parcel.pk, cast.ben, page)
    assert said(*parcels) == ["confirmed"] * 3


def test_rule_47_with_a_quorum_each_approval_explains_the_log_by_its_own_list(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The first lead never saw the newcomer; that the second did is not enough."""
    large, _ = proposals(provider, cast, 30_000, 1850)
    approved(cast.ben, large)
    newcomer = build.proposed(cast.omar, amount_minor=300)
    approved(cast.cleo, large)
    assert state_of(large) == states.AUTHORIZED
    approved(cast.ben, newcomer)
    approved(cast.cleo, newcomer)
    assert said(newcomer, large) == ["confirmed", "lapsed"]
    assert ended_by(large) == LAPSED


def test_rule_47_approvals_on_two_pages_add_up_where_both_explain_what_happened(
    provider: SandboxProcess, cast: Cast
) -> None:
    small, large = proposals(provider, cast, 1850, 30_000)
    approved(cast.ben, large)
    approved(cast.ben, small)
    assert said(small) == ["confirmed"]
    approved(cast.cleo, large)
    assert state_of(large) == states.AUTHORIZED
    assert said(large) == ["confirmed"]


def test_rule_47_approvals_do_not_add_up_where_one_does_not_explain_what_happened(
    provider: SandboxProcess, cast: Cast
) -> None:
    [large] = proposals(provider, cast, 30_000)
    approved(cast.ben, large)
    unshown = build.proposed(cast.omar, amount_minor=300)
    approved(cast.ben, unshown)
    approved(cast.cleo, unshown)
    assert said(unshown) == ["confirmed"]
    approved(cast.cleo, large)
    large.refresh_from_db()
    assert (large.state, large.round) == (states.AWAITING_APPROVAL, 2)
    approved(cast.ben, large)
    assert said(large) == ["confirmed"]


def test_rule_47_policy_alone_has_seen_no_list_and_forgives_nothing(
    provider: SandboxProcess, cast: Cast, settings: Any, tmp_path: Path
) -> None:
    policy = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(policy.replace("tier0_max_minor = 0", "tier0_max_minor = 1000"))
    policies.current.cache_clear()
    cleared, sibling = proposals(provider, cast, 200, 5000)
    assert (cleared.state, cleared.quorum) == (states.AUTHORIZED, 0)
    approved(cast.ben, sibling)
    assert said(sibling, cleared) == ["confirmed", "lapsed"]


# Rule 48: log and balance under the lock, in the claim


def claim_inside(operation: Operation) -> None:
    """The claim statement within the open transaction, which holds its locks until the end."""
    limits = configured.LIMITS
    parameters: dict[str, Any] = {
        "id": operation.pk,
        "actor": "another worker",
        "lease": limits.lease_seconds,
        "send": limits.send_deadline_seconds,
        "identity": canonical({}).decode(),
        "contract_hash": b"x" * 32,
    }
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, parameters)
        assert cursor.fetchone() is not None


def test_rule_48_a_claim_that_waited_behind_its_sibling_reads_the_log_again(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, sibling)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(sibling)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "confirmed"}
    assert held(sibling) == (1850, "held")
    assert len(refunds(provider, first)) == 1


def test_rule_48_what_nobody_explains_does_not_slip_in_while_a_claim_waits(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    """The waiting statement's snapshot shows neither move; the locked version shows both."""
    first, sibling = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, sibling)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(sibling)
        build.external_refund("4821", 1850)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "lapsed"}
    assert creates(provider) == []
    assert ended_by(first) == LAPSED


def test_rule_48_an_unshown_refund_does_not_slip_in_while_a_claim_waits(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    first, _ = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first)
    unshown = build.authorized(cast.omar, cast.ben, amount_minor=300)
    sender = troupe.actor("send", [first])
    with transaction.atomic():
        claim_inside(unshown)
        sender.go()
        somebody_waits_for_a_lock()
    assert sender.result() == {str(first.pk): "lapsed"}
    assert creates(provider) == []


def test_rule_48_of_two_that_list_each_other_the_second_is_stale_when_the_money_is_gone(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, second)
    run("UPDATE payment SET captured_minor = 3000")
    assert said(first, second) == ["confirmed", "lapsed"]
    assert ended_by(second) == (states.AWAITING_APPROVAL, "balance")
    assert Payment.objects.get().refunded_minor == 1200


def test_rule_48_siblings_that_nobody_has_money_for_are_not_approved(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(captured_minor=3000)
    build.order(captured_minor=3000)
    first, second = [build.proposed(cast.omar, amount_minor=minor) for minor in (1200, 1850)]
    approved(cast.ben, first)
    refusal = refused(second, cast.ben, build.shown(second))
    assert refusal.code == "balance"
    assert refusal.facts == {"remaining_minor": 1800}


def test_rule_48_the_second_send_forgives_its_own_hold_and_its_siblings(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second, third = proposals(provider, cast)
    approved(cast.ben, first, second, third)
    assert said(second) == ["confirmed"]
    provider.fault("rate_429")
    assert said(first) == ["not_executed"]
    first.refresh_from_db()
    assert first.send_version == Order.objects.get().version == 3
    assert said(third) == ["confirmed"]
    make_due(first)
    assert said(first) == ["confirmed"]
    assert len(refunds(provider, first)) == 1
    assert OrderMove.objects.filter(operation=first, cause="reserved").count() == 1


def test_rule_48_the_second_send_forgives_nothing_else(
    provider: SandboxProcess, cast: Cast
) -> None:
    first, second = proposals(provider, cast, 1200, 1850)
    approved(cast.ben, first, second)
    provider.fault("rate_429")
    assert said(first) == ["not_executed"]
    unshown = build.authorized(cast.omar, cast.ben, amount_minor=300)
    assert said(unshown) == ["confirmed"]
    make_due(first)
    assert said(first) == ["lapsed"]
    assert held(first) == (0, "released")
    assert said(second) == ["lapsed"]
