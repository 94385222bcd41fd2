"""Public reports of payments that were not what the refund took them for: B105 to B113."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from refunds import approvals, dispatch, feed
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation, Order, Payment
from tests import build
from tests.bugs.steps import authorized, balance_of, state_of
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def stopped_by(provider: SandboxProcess, cast: Cast, state: str) -> Operation:
    """An approved refund whose payment became `state` before it was sent."""
    operation = authorized(provider, cast)
    build.order(state=state)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    assert state_of(operation) == states.AWAITING_APPROVAL
    assert (operation.round, operation.stale_cause) == (2, "order_changed")
    assert provider.calls() == []
    with pytest.raises(Refusal) as refused:
        approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    assert f"Payment pi_4821 is {state}" in refused.value.detail
    return operation


def test_b105_a_dispute_after_the_approval_stops_the_send(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = stopped_by(provider, cast, "disputed")
    assert operation.send_version is None


def test_b107_an_uncaptured_payment_is_not_refunded_and_the_answer_says_what_to_do(
    cast: Cast,
) -> None:
    build.order(state="uncaptured")
    operation = build.proposed(cast.echo)
    assert operation.state == states.DENIED
    check = operation.checks.get(name="payment_refundable")
    assert not check.passed
    assert "an uncaptured payment is voided, not refunded" in check.says


def test_b109_a_capture_that_was_reversed_after_the_approval_stops_the_send(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = stopped_by(provider, cast, "reversed")
    # Even undone, it is a change that the approver did not see.
    build.order(state="captured")
    assert dispatch.send(str(operation.pk)) == "gone"
    assert dispatch.ready(10) == []


def test_b111_after_a_part_was_refunded_the_whole_is_denied(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=4000, captured_minor=10000)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    build.order(captured_minor=10000, fulfilment_state="cancelled")
    assert Operation.objects.count() == 1
    whole = build.proposed(cast.ada, amount_minor=10000)
    assert whole.state == states.DENIED
    says = whole.checks.get(name="within_balance").says
    assert says == "60.00 USD of 100.00 USD still refundable"
    assert len(provider.refunds()) == 1


def test_b113_refunding_the_payment_made_twice_leaves_the_order_paid(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment("pi_4821")
    provider.payment("pi_again")
    paid_twice = build.order(fulfilment_state="delivered")
    second = feed.PaymentSnapshot(
        ref="pi_again",
        provider_account="plain-main",
        state="captured",
        captured_minor=12900,
        captured_at=timezone.now() - timedelta(days=9),
    )
    again = feed.OrderSnapshot(
        ref="4821", currency="USD", facts_as_of=timezone.now(), payments=(second,)
    )
    feed.upsert(again, by="shop")
    with pytest.raises(Refusal) as unclear:
        build.proposed(cast.ada, reason_code="duplicate_payment", amount_minor=12900)
    assert unclear.value.code == "payment_ambiguous"
    operation = build.authorized(
        cast.ada,
        cast.ben,
        cast.cleo,
        amount_minor=12900,
        reason_code="duplicate_payment",
        payment_ref="pi_again",
    )
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert balance_of("pi_4821") == (0, 0, 12900)
    assert balance_of("pi_again") == (0, 12900, 0)
    order = Order.objects.get(pk=paid_twice.pk)
    assert (order.fulfilment_state, order.frozen) == ("delivered", False)
    assert set(Payment.objects.values_list("state", flat=True)) == {"captured"}
