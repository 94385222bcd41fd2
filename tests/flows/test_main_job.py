"""Propose, approve, send once, know or say unknown: in process, against the real sandbox."""

from __future__ import annotations

import pytest

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.models import Operation, Payment
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def ready_to_send(provider: SandboxProcess, cast: Cast, account: str = "plain-main") -> Operation:
    provider.payment(account=account)
    build.order(account=account)
    return build.authorized(cast.echo, cast.ben)


def test_an_approved_refund_is_sent_once_and_booked(provider: SandboxProcess, cast: Cast) -> None:
    operation = ready_to_send(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED
    [refund] = provider.refunds("plain-main")
    assert refund["aftersend_operation"] == operation.marker
    assert refund["amount_minor"] == 7900
    assert refund["key"] == operation.provider_key
    payment = Payment.objects.get()
    assert (payment.held_minor, payment.refunded_minor) == (0, 7900)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(provider.refunds("plain-main")) == 1


def test_a_lost_answer_is_unknown_until_a_lookup_finds_the_refund(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready_to_send(provider, cast)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    operation.refresh_from_db()
    assert operation.state == states.UNKNOWN
    assert Payment.objects.get().held_minor == 7900
    assert reconciler.look_up(operation.pk) == "Settle"
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED
    [refund] = provider.refunds("plain-main")
    assert operation.provider_refunds.get().ref == refund["id"]
    payment = Payment.objects.get()
    assert (payment.held_minor, payment.refunded_minor) == (0, 7900)
