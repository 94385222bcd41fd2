"""Public reports of texts, metadata and letters that stopped a refund: B135 to B139."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation
from tests import build
from tests.bugs.steps import balance_of, state_of
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

# 500 characters, the most we take, and three bytes each in UTF-8.
LONG_TEXT = "壊" * 500
ACCOUNTS = ("plain-main", "stripe-main")


def told(provider: SandboxProcess, cast: Cast, account: str, **words: Any) -> Operation:
    """An approved refund of a payment, with these words of the caller."""
    provider.payment(account=account)
    build.order(account=account)
    return build.authorized(cast.echo, cast.ben, **words)


def test_b135_a_refusal_of_the_reason_books_nothing_and_the_text_stays_with_us(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.configure("plain-main", reasons_accepted=["duplicate"])
    operation = told(provider, cast, "plain-main", reason_text="the cat bit the cable: 壊れた")
    assert dispatch.send(str(operation.pk)) == "refused"
    assert state_of(operation) == states.FAILED
    assert operation.reason_text == "the cat bit the cable: 壊れた"
    assert "cat" not in bytes(operation.body).decode()
    assert provider.refunds() == []
    assert not operation.provider_refunds.exists()
    assert balance_of() == (0, 0, 12900)


@pytest.mark.parametrize("account", ACCOUNTS)
def test_b137_what_goes_out_is_short_in_bytes_and_always_carries_our_reference(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    words = dict.fromkeys(("ticket_ref", "run_ref", "step_ref", "requested_by_ref"), "é" * 128)
    operation = told(provider, cast, account, reason_text=LONG_TEXT, **words)
    assert len(operation.reason_text.encode()) == 1500
    body = bytes(operation.body)
    assert len(body) < 512
    assert operation.marker.encode() in body
    provider.fault("drop_after_commit", account=account)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds(account)
    assert refund["aftersend_operation"] == operation.marker
    assert operation.reason_text == LONG_TEXT


def test_b137_a_longer_text_is_refused_and_not_cut(cast: Cast) -> None:
    build.order()
    with pytest.raises(Refusal) as refused:
        build.proposed(cast.echo, reason_text=LONG_TEXT + "壊")
    assert (refused.value.code, refused.value.field) == ("text_too_long", "reason_text")
    assert not Operation.objects.exists()


@pytest.mark.parametrize("account", ACCOUNTS)
def test_b139_an_apostrophe_and_a_combining_accent_get_a_refund_through(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    name = "Zoe\u0301 O\u2019Connor-D'Arcy"
    operation = told(
        provider, cast, account, requested_by_ref=name, reason_text=f"asked for by {name}"
    )
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert state_of(operation) == states.SUCCEEDED
    assert (operation.requested_by_ref, operation.reason_text) == (name, f"asked for by {name}")
    assert bytes(operation.body).isascii()
