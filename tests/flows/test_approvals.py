"""Consent: who may say yes to what, and what ends it before anything is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from refunds import approvals, dispatch, feed, intake, ledger, withdrawal
from refunds.consent import Shown
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Approval, Operation, Order
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def refused(operation: Operation, person: object, shown: Shown | None = None) -> Refusal:
    """The refusal of an approval that must not be recorded."""
    before = Approval.objects.count()
    with pytest.raises(Refusal) as caught:
        approvals.approve(operation.pk, person, shown or build.shown(operation))  # type: ignore[arg-type]
    operation.refresh_from_db()
    assert Approval.objects.count() == before
    assert operation.state == states.AWAITING_APPROVAL
    return caught.value


def test_a_requester_is_known_in_whatever_letters_their_agent_wrote_them(cast: Cast) -> None:
    build.order(captured_minor=90_000)
    operation = build.proposed(
        cast.echo, amount_minor=15_000, requested_by_kind="person", requested_by_ref=" Ben"
    )
    refusal = refused(operation, cast.ben)
    assert (refusal.code, "asked for by you" in refusal.detail) == ("own_proposal", True)


def test_nobody_approves_what_they_or_their_agent_proposed(cast: Cast) -> None:
    build.order()
    by_agent = build.proposed(cast.echo)
    assert refused(by_agent, cast.ada).code == "own_proposal"
    assert "your agent Echo" in refused(by_agent, cast.ada).detail
    by_person = build.proposed(cast.ben, amount_minor=1200)
    assert refused(by_person, cast.ben).code == "own_proposal"
    assert approvals.approve(by_agent.pk, cast.ben, build.shown(by_agent)).complete


def test_only_a_lead_approves(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    for person in (cast.rosa, cast.omar, cast.olga, cast.mia, cast.adam, cast.dora, cast.fay):
        refusal = refused(operation, person)
        assert (refusal.code, refusal.status) == ("role_missing", 403)


def test_an_admin_approves_nothing_whatever_else_they_are(cast: Cast) -> None:
    build.order()
    cast.ben.groups.add(Group.objects.get(name="admin"))
    refusal = refused(build.proposed(cast.echo), cast.ben)
    assert (refusal.code, "mint agents' keys" in refusal.detail) == ("role_missing", True)


def test_another_fingerprint_or_order_version_is_stale_and_records_nothing(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    other = Shown(fingerprint=bytes(32), order_version=1, siblings=())
    assert refused(operation, cast.ben, other).code == "fingerprint_differs"
    seen = build.shown(operation)
    build.external_refund("4821", 3000)
    refusal = refused(operation, cast.ben, seen)
    assert refusal.code == "stale_page"
    assert "changed from version 1 to 2" in refusal.detail


def test_above_the_first_limit_two_leads_are_needed(cast: Cast) -> None:
    build.order(captured_minor=90_000)
    operation = build.proposed(cast.omar, amount_minor=50_000)
    assert (operation.tier, operation.quorum) == (2, 2)
    first = approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert not first.complete
    assert refused(operation, cast.ben).code == "already_decided"
    assert approvals.approve(operation.pk, cast.cleo, build.shown(operation)).complete


def test_above_the_second_limit_a_lead_and_finance_are_needed(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    operation = build.proposed(cast.omar, amount_minor=500_000)
    assert operation.tier == 3
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert refused(operation, cast.cleo).code == "role_missing"
    assert approvals.approve(operation.pk, cast.fay, build.shown(operation)).complete


def test_an_approval_of_an_older_order_version_does_not_add_up_with_one_of_todays(
    cast: Cast,
) -> None:
    build.order(captured_minor=90_000)
    operation = build.proposed(cast.omar, amount_minor=50_000)
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    build.external_refund("4821", 3000)
    second = approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    assert not second.complete
    assert approvals.approve(operation.pk, cast.ben, build.shown(operation)).complete


def test_two_approvals_cannot_both_count_on_the_same_money(cast: Cast) -> None:
    build.order(captured_minor=10_000)
    first = build.proposed(cast.echo, amount_minor=6_000)
    second = build.proposed(cast.foxtrot, amount_minor=5_900)
    approvals.approve(first.pk, cast.ben, build.shown(first, tick=True))
    refusal = refused(second, cast.ada, build.shown(second, tick=True))
    assert refusal.code == "balance"
    assert "Only 40.00 USD is still refundable" in refusal.detail
    assert refusal.facts["remaining_minor"] == 4_000


def test_money_that_an_unknown_refund_holds_is_named_to_whoever_lacks_it(
    cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    build.order()
    lost = build.authorized(cast.echo, cast.ben, amount_minor=7900)
    waiting = build.proposed(cast.omar, amount_minor=6000)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(lost.pk)) == "unanswered"
    refusal = refused(waiting, cast.cleo, build.shown(waiting, tick=True))
    assert refusal.code == "balance"
    assert refusal.detail == (
        "Not approved. Only 50.00 USD is still refundable on order 4821; 79.00 USD is held by a"
        f" refund whose outcome is unknown (…{str(lost.pk)[-6:]})."
    )


def test_a_possible_repeat_needs_the_tick(cast: Cast, provider: SandboxProcess) -> None:
    provider.payment()
    build.order()
    first = build.authorized(cast.echo, cast.ben, amount_minor=1500)
    assert dispatch.send(str(first.pk)) == "confirmed"
    again = build.proposed(cast.echo, amount_minor=1500, separate_from=first.pk)
    assert again.possible_repeat
    assert refused(again, cast.ben).code == "proof_missing"
    assert approvals.approve(again.pk, cast.ben, build.shown(again, tick=True)).complete
    assert dispatch.send(str(again.pk)) == "confirmed"
    refunds = provider.refunds("plain-main")
    assert len({each["key"] for each in refunds}) == len({each["id"] for each in refunds}) == 2


def test_a_pressed_approval_can_be_taken_back_before_the_send(
    cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert provider.refunds() == []
    operation.refresh_from_db()
    assert (operation.state, operation.stale_cause) == (states.AWAITING_APPROVAL, "taken_back")
    assert approvals.approve(operation.pk, cast.ben, build.shown(operation)).complete
    assert dispatch.send(str(operation.pk)) == "confirmed"
    operation.refresh_from_db()
    with pytest.raises(Refusal) as late:
        approvals.revoke(operation.pk, cast.ben, version=operation.version)
    assert late.value.code == "already_sent"


def test_an_order_that_moved_before_the_send_makes_the_approval_stale(
    cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    build.external_refund("4821", 3000)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    operation.refresh_from_db()
    assert (operation.state, operation.stale_cause) == (states.AWAITING_APPROVAL, "order_changed")
    assert operation.round == 2
    assert provider.calls("plain-main") == []


@pytest.mark.parametrize("change", ["expired", "authority"])
def test_an_approval_ends_when_its_time_or_its_givers_right_ends(cast: Cast, change: str) -> None:
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    if change == "expired":
        Operation.objects.filter(pk=operation.pk).update(
            expires_at=timezone.now() - timedelta(seconds=1)
        )
    else:
        cast.ben.groups.clear()
    assert dispatch.send(str(operation.pk)) == "lapsed"
    operation.refresh_from_db()
    assert operation.stale_cause == change


def test_a_proposal_that_nobody_decides_expires(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    assert ledger.expire(timezone.now(), batch_max=10) == 0
    later = timezone.now() + timedelta(days=4)
    assert ledger.expire(later, batch_max=10) == 1
    operation.refresh_from_db()
    assert (operation.state, operation.blocks_equivalent) == (states.EXPIRED, False)


def test_a_rejection_needs_a_reason_and_ends_only_this_request(cast: Cast) -> None:
    build.order()
    kept = build.proposed(cast.echo, amount_minor=1000)
    gone = build.proposed(cast.echo, amount_minor=2000)
    with pytest.raises(Refusal) as short:
        approvals.reject(gone.pk, cast.ben, reason="no", version=gone.version)
    assert short.value.code == "reason_too_short"
    approvals.reject(gone.pk, cast.ben, reason="the customer kept it", version=gone.version)
    gone.refresh_from_db()
    kept.refresh_from_db()
    assert (gone.state, kept.state) == (states.REJECTED, states.AWAITING_APPROVAL)
    assert gone.events.get(event="rejected").detail["reason"] == "the customer kept it"


def test_withdrawing_is_possible_until_the_claim(cast: Cast, provider: SandboxProcess) -> None:
    provider.payment()
    build.order()
    caller = intake.Caller(agent=cast.echo)
    operation = build.authorized(cast.echo, cast.ben)
    withdrawal.withdraw(operation.pk, by=caller, reason="sorted out by phone")
    assert dispatch.send(str(operation.pk)) == "gone"
    sent = build.authorized(cast.echo, cast.ben)
    dispatch.send(str(sent.pk))
    with pytest.raises(Refusal) as late:
        withdrawal.withdraw(sent.pk, by=caller)
    assert late.value.code == "already_sent"
    assert len(provider.refunds()) == 1


def test_a_dispute_between_approval_and_send_stops_it(cast: Cast, provider: SandboxProcess) -> None:
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    build.order(state="disputed")
    assert Order.objects.get().version == 2
    assert dispatch.send(str(operation.pk)) == "lapsed"
    with pytest.raises(Refusal) as blocked:
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert "is disputed" in blocked.value.detail


def test_equal_facts_leave_the_order_version_alone(cast: Cast) -> None:
    build.order()
    build.order()
    assert Order.objects.get().version == 1
    with pytest.raises(Refusal) as moved:
        build.order("5000", payment_ref="pi_4821")
    assert moved.value.code == "payment_moved"
    assert not Order.objects.filter(ref="5000").exists()
    assert feed.PAYMENT_STATES[1] == "captured"
