"""Late truth of two more kinds: what is booked is shown no more, and a dispute took a part."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from django.utils import timezone

from reconciliation import disputes, reconciler
from reconciliation.cases import close_by_people
from reconciliation.models import AccountSweep, Case
from reconciliation.verifiers import lookups
from refunds import dispatch
from refunds.domain import states
from refunds.models import Dispute, Evidence, Operation, Payment, ProviderRefund
from refunds.providers.account_list import ListedDispute, Standing
from tests import build
from tests.bugs.steps import authorized, balance_of, open_reasons, state_of
from tests.cast import Cast
from tests.outside.steps import DAY, causes, later, tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def _forgets(provider: SandboxProcess, *payments: str, account: str = "plain-main") -> None:
    """The provider's book has the payments, and no refund any more."""
    before = datetime.fromisoformat(provider.control("GET", "/book")["now"])
    provider.reset()
    for ref in payments:
        provider.payment(ref, account=account)
    now = datetime.fromisoformat(provider.control("GET", "/book")["now"])
    provider.advance(max((before - now).total_seconds(), 0))


def _sent(provider: SandboxProcess, cast: Cast, ref: str, account: str) -> Operation:
    provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    operation = build.authorized(cast.fay, cast.ben, order_ref=ref, amount_minor=500)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    return operation


def test_a_booked_refund_that_a_complete_list_no_longer_shows_asks_a_person_and_stays_asked(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    reconciler.look_up(operation.pk)
    _forgets(provider, "pi_4821")
    reconciler.look_up(operation.pk)
    assert open_reasons(operation) == []  # so soon after the booking a list may lag
    later(provider, 60)
    reconciler.look_up(operation.pk)
    assert (state_of(operation), open_reasons(operation)) == (states.SUCCEEDED, ["contradiction"])
    ref = operation.provider_refunds.get().ref
    assert Case.objects.get().because.startswith(f"{ref} is booked, and a complete list")
    assert balance_of() == (0, 7900, 5000)  # nothing is freed for a second one
    assert Payment.objects.get().halted
    for _ in range(2):
        later(provider, DAY + 1)
        reconciler.look_up(operation.pk)
    assert open_reasons(operation) == ["contradiction"]
    assert lookups.check([operation.pk]) == []  # people know
    case = Case.objects.get()
    close_by_people(case, operation.payment, "The provider’s archive has it.")
    for _ in range(2):
        later(provider, DAY + 1)
        tick()
    # Answered once, it is not asked each day anew, and the payment is free.
    assert (open_reasons(operation), Payment.objects.get().halted) == ([], False)


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_the_account_s_own_list_has_what_vanished_from_it_looked_up(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    gone = _sent(provider, cast, "1000", account)
    tick()
    later(provider, 60)
    _forgets(provider, "pi_1000", account=account)
    kept = _sent(provider, cast, "1001", account)
    tick()
    looked = Evidence.objects.filter(kind="lookup")
    assert not looked.exists()
    later(provider, 2 * DAY)
    tick()
    assert set(looked.values_list("operation_id", flat=True)) == {gone.pk}
    assert (open_reasons(gone), open_reasons(kept)) == (["contradiction"], [])
    assert state_of(gone) == states.SUCCEEDED


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_a_page_speaks_for_the_time_between_its_edges_and_no_list_for_what_is_new(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    _sent(provider, cast, "1000", account)
    _forgets(provider, "pi_1000", account=account)
    tick()
    row = AccountSweep.objects.get(provider_account=account, kind="recent")
    assert row.completed_at is not None
    assert not Evidence.objects.filter(kind="lookup").exists()


def _lost(provider: SandboxProcess, state: str, amount_minor: int) -> None:
    fields = {"account": "plain-main", "payment": "pi_4821", "state": state}
    provider.control("POST", "/dispute", fields | {"amount_minor": amount_minor})
    later(provider, 301)
    tick()


def test_a_dispute_that_is_lost_about_a_part_counts_and_leaves_the_rest_refundable(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    waiting = build.authorized(cast.fay, cast.ben, amount_minor=7900)
    _lost(provider, "opened", 6000)
    assert (Payment.objects.get().state, balance_of()) == ("disputed", (0, 0, 12900))
    _lost(provider, "lost", 6000)
    assert (Payment.objects.get().state, balance_of()) == ("captured", (0, 6000, 6900))
    assert causes() == ["first_seen", "dispute", "dispute"]
    [row] = ProviderRefund.objects.all()
    assert (row.ref, row.provider_status) == (Dispute.objects.get().ref, "lost dispute")
    assert dispatch.send(str(waiting.pk)) == "lapsed"  # 79.00 were approved of 129.00, not of 69.00
    rest = build.authorized(cast.fay, cast.ben, amount_minor=500)
    assert dispatch.send(str(rest.pk)) == "confirmed"
    assert balance_of() == (0, 6500, 6400)
    later(provider, DAY + 1)
    tick()
    assert (len(causes()), Case.objects.count()) == (4, 0)
    build.order()  # a feed that has not heard of it changes nothing
    assert (Payment.objects.get().state, balance_of()) == ("captured", (0, 6500, 6400))


def test_a_part_that_is_won_after_all_no_longer_counts(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    _lost(provider, "lost", 6000)
    assert balance_of() == (0, 6000, 6900)
    _lost(provider, "won", 6000)
    assert (Payment.objects.get().state, balance_of()) == ("captured", (0, 0, 12900))


def test_a_part_lost_before_its_order_was_fed_counts_with_the_order(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order("1000")
    provider.payment()
    _lost(provider, "lost", 6000)
    assert Dispute.objects.get().payment is None
    build.order()
    payment = Payment.objects.get(ref="pi_4821")
    assert (payment.state, payment.refunded_minor, payment.available_minor) == (
        "captured",
        6000,
        6900,
    )


def _told(standing: Standing) -> ListedDispute:
    return ListedDispute(
        ref="dp_1",
        payment_refs=("pi_4821",),
        amount_minor=3000,
        currency="USD",
        standing=standing,
        provider_status=standing,
        created_at=timezone.now(),
    )


def test_a_part_that_is_lost_opens_no_payment_that_the_feed_calls_reversed(cast: Cast) -> None:
    build.order()
    Payment.objects.update(state="reversed")
    disputes.learn_dispute("plain-main", _told("lost"))
    assert (Payment.objects.get().state, balance_of()) == ("reversed", (0, 3000, 9900))
    disputes.learn_dispute("plain-main", replace(_told("lost"), amount_minor=4000))
    disputes.learn_dispute("plain-main", _told("won"))
    assert (Payment.objects.get().state, balance_of()) == ("reversed", (0, 0, 12900))


def test_a_lost_dispute_whose_amount_is_set_right_later_counts_with_that_amount(
    cast: Cast,
) -> None:
    build.order()
    told = _told("lost")
    for amount_minor in (3000, 6000, 6000, 5000):
        disputes.learn_dispute("plain-main", replace(told, amount_minor=amount_minor))
        assert balance_of() == (0, amount_minor, 12900 - amount_minor)
    assert causes() == ["first_seen", "dispute", "dispute", "dispute"]
