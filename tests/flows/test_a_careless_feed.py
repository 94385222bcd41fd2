"""A merchant's feed that is early, wrong or odd: it may cost a correction, never a second refund."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from reconciliation import monitors, reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch, feed
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Operation, Order, Payment, ProviderRefund
from refunds.text import parse_instant
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def answer_lost(provider: SandboxProcess, cast: Cast, amount_minor: int = 7700) -> Operation:
    provider.payment()
    build.order()
    operation = build.authorized(cast.fay, cast.ben, amount_minor=amount_minor)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    return operation


def amounts(payment: Payment) -> tuple[int, int]:
    payment.refresh_from_db()
    return payment.refunded_minor, payment.held_minor


@pytest.mark.parametrize("account", ["plain-main", "plain-blind"])
def test_our_own_refund_fed_before_its_answer_is_recorded_is_booked_once(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    provider.payment(account=account)
    build.order(account=account)
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    provider.fault("hold", account=account, execute="at_once", seconds=60)
    events: list[str] = []

    def sender() -> None:
        events.append(dispatch.send(str(operation.pk)))
        connection.close()

    sending = threading.Thread(target=sender)
    sending.start()
    provider.wait_for_hold()
    [refund] = provider.refunds(account)
    build.external_refund("4821", 4000, ref=refund["id"])
    provider.release()
    sending.join(timeout=10)
    assert events == ["unanswered"]
    assert monitors.over_refunded() == 0
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED
    assert amounts(Payment.objects.get()) == (4000, 0)
    assert not Case.objects.filter(closed_at=None).exists()


def test_a_refund_fed_with_another_amount_counts_as_the_provider_shows_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    [refund] = provider.refunds()
    build.external_refund("4821", 1, ref=refund["id"])
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED
    assert amounts(Payment.objects.get()) == (7700, 0)
    assert ProviderRefund.objects.get().amount_minor == 7700
    move = Order.objects.get().moves.order_by("-version").first()
    assert move is not None
    assert (move.cause, move.detail["fed_minor"]) == ("difference", 1)


def test_a_refund_fed_for_another_payment_counts_on_the_one_it_left(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    known = Order.objects.get()
    feed.upsert(
        feed.OrderSnapshot(
            ref="4821",
            currency="USD",
            facts_as_of=timezone.now(),
            payments=(
                feed.PaymentSnapshot(
                    ref="pi_other",
                    provider_account="plain-main",
                    state="captured",
                    captured_minor=9000,
                ),
            ),
        ),
        by="shop",
    )
    [refund] = provider.refunds()
    build.external_refund("4821", 7700, ref=refund["id"], payment_ref="pi_other")
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.SUCCEEDED
    assert amounts(Payment.objects.get(order=known, ref="pi_4821")) == (7700, 0)
    assert amounts(Payment.objects.get(order=known, ref="pi_other")) == (0, 0)


@pytest.mark.parametrize("word", ["completed", "Succeeded", "on its way"])
def test_a_status_word_we_do_not_know_counts_as_gone(cast: Cast, word: str) -> None:
    build.order(captured_minor=9000)
    fed = feed.ExternalRefund(
        payment_ref="pi_4821",
        provider_refund_ref="rf_outside",
        amount_minor=9000,
        provider_status=word,
    )
    snapshot = feed.OrderSnapshot(ref="4821", currency="USD", external_refunds=(fed,))
    assert feed.upsert(snapshot, by="shop").changed
    assert Payment.objects.get().available_minor == 0
    assert build.proposed(cast.echo, amount_minor=8000).state == states.DENIED


def test_an_order_keeps_its_currency_once_it_has_payments(cast: Cast) -> None:
    build.order()
    with pytest.raises(Refusal) as refused:
        feed.upsert(feed.OrderSnapshot(ref="4821", currency="EUR"), by="shop")
    assert (refused.value.code, refused.value.status) == ("currency_moved", 409)
    assert Order.objects.get().currency == "USD"


@pytest.mark.parametrize(
    "link", ["https://[abc", "https://[::1", "https://exa\u2100mple.com", "http://shop.example"]
)
def test_a_link_that_is_none_is_refused_by_name(cast: Cast, link: str) -> None:
    with pytest.raises(Refusal) as refused:
        build.order(links={"order": link})
    assert refused.value.code == "link_not_allowed"
    assert not Order.objects.exists()


def test_references_with_colons_never_share_a_business_key(cast: Cast) -> None:
    for ref in ("A", "A:b"):
        build.order(ref, payment_ref=f"pi_{ref}")
    first = build.proposed(cast.echo, "A:b", 1000, request_ref="c")
    second = build.proposed(cast.echo, "A", 1000, request_ref="b:c")
    assert first.business_key != second.business_key
    build.proposed(cast.foxtrot, "A", 1100, request_ref="b:request-2")
    assert build.proposed(cast.foxtrot, "A:b", 1200).request_ref == "request-2"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("NUL \0 in the reason", "text_control"),
        ("card 4111 1111 1111 1111 was used", "text_card_number"),
        ("long " * 101, "text_too_long"),
    ],
)
def test_a_rejection_keeps_no_odd_text(cast: Cast, reason: str, code: str) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    with pytest.raises(Refusal) as refused:
        approvals.reject(operation.pk, cast.ben, reason=reason, version=operation.version)
    assert refused.value.code == code
    operation.refresh_from_db()
    assert operation.state == states.AWAITING_APPROVAL


def test_a_payment_captured_in_the_future_is_not_refunded(cast: Cast) -> None:
    build.order()
    ahead: Any = timezone.now().replace(year=2999)
    Payment.objects.update(captured_at=ahead)
    operation = build.proposed(cast.echo)
    assert operation.state == states.DENIED
    assert operation.checks.get(passed=False).name == "refund_age"


@pytest.mark.parametrize(
    ("at", "status"),
    [
        ("9999-12-31T23:59:59-23:59", 404),
        ("2020-01-01T00:00:00+16:00", 200),
        ("yesterday", 404),
    ],
)
def test_an_odd_cursor_is_an_empty_page_or_not_found(
    cast: Cast, client: Any, at: str, status: int
) -> None:
    client.force_login(cast.ben)
    after = f"order_changed~{at}~0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
    assert client.get("/approvals", {"after": after, "tab": "stale"}).status_code == status


@pytest.mark.parametrize("offset", ["+16:00", "-23:59"])
def test_an_instant_with_an_offset_that_no_place_has_is_refused(offset: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_instant(f"2026-01-01T00:00:00{offset}")
    assert refused.value.code == "field_format"
