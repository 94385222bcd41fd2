"""What turns out after the end: money that comes back, or that moved although we said no."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone

from reconciliation import account_sweep, reconciler, remedies
from reconciliation.choices import HAPPENED
from reconciliation.models import Case
from reconciliation.verifiers import lookups
from refunds import dispatch
from refunds.domain import states
from refunds.ledger import RECONCILER, lock, release, transition
from refunds.models import Evidence, Operation, Payment, ProviderRefund
from refunds.providers import plain_contracts, registry
from tests import build
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    events_of,
    open_reasons,
    state_of,
)
from tests.cast import Cast
from tests.ledger.rulings import looked, ruled, signed, unknown_with_case
from tests.monitors.stage import forced
from tests.outside.steps import (
    DAY,
    by_hand,
    causes,
    history,
    later,
    look_up_due,
    past,
    tick,
    turn,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_a_refund_taken_back_after_three_days_is_returned_and_owed_again(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = authorized(provider, cast, account)
    provider.fault("take_back", account=account, seconds=3 * DAY)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    for _ in range(2):
        later(provider, DAY + 1)
        tick()
        assert state_of(operation) == states.SUCCEEDED
    assert not Evidence.objects.filter(operation=operation, kind="lookup").exists()
    later(provider, DAY + 1)
    tick()
    [refund] = provider.refunds(account)
    assert (refund["status"], state_of(operation)) == ("failed", states.RETURNED)
    assert balance_of() == (0, 0, 12900)
    assert causes() == ["first_seen", "reserved", "taken_back"]
    moved = operation.events.get(event="taken_back")
    assert Evidence.objects.filter(pk=moved.evidence_id or 0, kind="lookup").exists()
    case = Case.objects.get(operation=operation)
    assert case.reasons == ["remedy"]
    assert "The customer still expects 79.00 USD" in case.because
    # Told once: neither the next reading nor the round over what is owed asks again.
    Case.objects.update(closed_at=timezone.now(), closed_because="voucher V-1")
    later(provider, DAY + 1)
    tick()
    assert remedies.owe_for_ended(timezone.now(), batch_max=10) == 0
    assert (state_of(operation), Case.objects.count()) == (states.RETURNED, 1)


def test_a_refund_cancelled_in_the_dashboard_while_pending_fails_and_frees_its_money(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, "plain-async")
    provider.fault("cancel_later", account="plain-async", seconds=600)
    assert dispatch.send(str(operation.pk)) == "accepted"
    later(provider, 601)
    tick()
    assert (state_of(operation), balance_of()) == (states.FAILED, (0, 0, 12900))


def test_a_refund_that_turns_up_after_failed_stops_what_was_to_make_good_for_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast, amount_minor=4000)
    with transaction.atomic():
        locked = lock(operation.pk)
        release(locked, by=RECONCILER)
        transition(locked.operation, "found_failed", by=RECONCILER)
    remedy = build.authorized(cast.fay, cast.cleo, amount_minor=4100)
    forced(remedy, remedy_of_id=operation.pk)
    tick()
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(remedy) == ["contradiction"]
    assert Operation.objects.get(pk=remedy.pk).halted
    assert Payment.objects.get().halted
    assert dispatch.send(str(remedy.pk)) != "confirmed"
    assert [each["amount_minor"] for each in provider.refunds()] == [4000]
    later(provider, 3601)
    look_up_due()
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 4000, 8900))


def test_a_remedy_that_is_out_already_is_named_by_the_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast, amount_minor=4000)
    with transaction.atomic():
        locked = lock(operation.pk)
        release(locked, by=RECONCILER)
        transition(locked.operation, "found_failed", by=RECONCILER)
    remedy = build.authorized(cast.fay, cast.cleo, amount_minor=4100)
    forced(remedy, remedy_of_id=operation.pk)
    assert dispatch.send(str(remedy.pk)) == "confirmed"
    reconciler.look_up(operation.pk)
    assert open_reasons(operation) == ["contradiction"]
    assert f"out already: {remedy.business_key}" in Case.objects.get(operation=operation).because
    assert open_reasons(remedy) == []


def test_of_a_refund_paid_twice_the_one_that_comes_back_no_longer_counts(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=4000)
    provider.fault("execute_twice")
    dispatch.send(str(operation.pk))
    tick()
    assert (balance_of(), open_reasons(operation)) == ((0, 8000, 4900), ["duplicate"])
    Case.objects.update(closed_at=timezone.now(), closed_because="recovered")
    Payment.objects.update(halted=False)
    booked = operation.provider_refunds.order_by("pk")[0].ref
    turn(provider, booked, "failed")
    later(provider, DAY)
    tick()
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 4000, 8900))
    assert causes()[-1] == "taken_back"
    later(provider, DAY)
    tick()
    assert (open_reasons(operation), Payment.objects.get().halted) == ([], False)
    later(provider, 300)
    assert lookups.check([operation.pk]) == []
    turn(provider, booked, "succeeded")
    reconciler.look_up(operation.pk)
    assert (open_reasons(operation), balance_of()) == (["duplicate"], (0, 8000, 4900))


def test_of_a_refund_paid_twice_that_came_back_twice_nothing_counts_and_the_money_is_owed(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=4000)
    provider.fault("execute_twice")
    dispatch.send(str(operation.pk))
    tick()
    assert (balance_of(), open_reasons(operation)) == ((0, 8000, 4900), ["duplicate"])
    for refund in provider.refunds():
        turn(provider, refund["id"], "failed")
    later(provider, DAY)
    tick()
    assert (state_of(operation), balance_of()) == (states.RETURNED, (0, 0, 12900))
    assert open_reasons(operation) == ["duplicate", "remedy"]
    assert causes()[-2:] == ["taken_back", "taken_back"]
    Case.objects.update(closed_at=timezone.now(), closed_because="voucher V-1")
    reconciler.look_up(operation.pk)
    later(provider, 300)
    assert (state_of(operation), Case.objects.count()) == (states.RETURNED, 1)
    assert lookups.check([operation.pk]) == []


def test_what_a_list_showed_is_kept_until_a_lookup_has_read_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    dispatch.send(str(operation.pk))
    [refund] = provider.refunds()
    turn(provider, refund["id"], "failed")
    provider.fault("lookup_503", on="list", match={"payment": "pi_4821"}, times=None)
    tick()
    # Our own answer says that it succeeded, and may not outweigh what was shown since.
    assert state_of(operation) == states.SUCCEEDED
    assert operation.due_at is not None
    assert Evidence.objects.get(operation=operation, kind="listing").facts["provider_status"] == (
        "failed"
    )
    provider.clear_faults()
    later(provider, 4000)
    tick()
    assert state_of(operation) == states.RETURNED


def test_evidence_against_a_ruling_takes_out_what_it_counted_and_asks_people_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    account = "plain-unbounded"
    case = unknown_with_case(provider, cast, account=account)
    operation = Operation.objects.get()
    strangers = by_hand(provider, 4000, account=account)
    looked(operation)
    signed(ruled(case, cast.omar, HAPPENED, ref=strangers), cast.ines)
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 4000, 8900))
    ours = past("rf_k1", amount_minor=4000, marker=str(operation.pk), account=account)
    history(provider, ours)
    tick()
    assert (state_of(operation), events_of(operation)[-1]) == (
        states.UNKNOWN,
        "ruling_contradicted",
    )
    assert open_reasons(operation) == ["contradiction"]
    later(provider, 3601)
    tick()
    # Ours is found by its marker, and the stranger's counts as what it is.
    assert state_of(operation) == states.SUCCEEDED
    assert operation.provider_refunds.get().ref == "rf_k1"
    assert ProviderRefund.objects.get(ref=strangers).operation is None
    assert (balance_of(), Payment.objects.get().halted) == ((0, 8000, 4900), True)


def test_where_an_account_has_no_lists_what_ended_is_looked_up_once_a_day(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = authorized(provider, cast)
    dispatch.send(str(operation.pk))
    unlisted = plain_contracts.CONTRACTS["plain-main"].with_changes(account_list="none")
    monkeypatch.setitem(plain_contracts.CONTRACTS, "plain-main", unlisted)
    registry.accounts.cache_clear()
    try:
        assert account_sweep.watch_by_lookup(timezone.now()) == 0
        later(provider, DAY)
        assert account_sweep.watch_by_lookup(timezone.now()) == 1
        look_up_due()
        assert account_sweep.watch_by_lookup(timezone.now()) == 0
        later(provider, 3 * DAY)
        assert account_sweep.watch_by_lookup(timezone.now()) == 0  # no longer watched
    finally:
        registry.accounts.cache_clear()
    assert state_of(operation) == states.SUCCEEDED
