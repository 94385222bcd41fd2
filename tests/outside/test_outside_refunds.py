"""Refunds that nobody here made: they count, they ask a person, and they do so once."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from reconciliation import outside
from reconciliation.models import Case
from refunds import approvals, dispatch, feed, policies
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.intake import Caller
from refunds.models import Evidence, Order, Payment, ProviderRefund, UnplacedRefund
from refunds.providers import registry
from refunds.withdrawal import withdraw
from tests import build
from tests.bugs.steps import answer_lost, authorized, balance_of, open_reasons, state_of
from tests.cast import Cast
from tests.outside.steps import (
    by_hand,
    cases,
    causes,
    feed_again,
    history,
    later,
    listed,
    past,
    tick,
    turn,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def payment_known(provider: SandboxProcess, account: str = "plain-main") -> Order:
    provider.payment(account=account)
    return build.order(account=account)


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_an_outside_refund_is_seen_within_six_minutes_and_asks_a_person_once(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    payment_known(provider, account)
    assert tick() == ["complete"]
    ref = by_hand(provider, account=account)
    assert tick() == []  # not due yet
    later(provider, 301)
    assert tick() == ["complete"]
    [refund] = provider.refunds(account)
    assert balance_of() == (0, refund["amount_minor"], 9900)
    assert causes() == ["first_seen", "external"]
    assert cases() == [(["external"], False)]
    assert Payment.objects.get().halted
    assert f"{ref}: 30.00 USD was refunded at the provider" in Case.objects.get().because
    later(provider, 301)
    assert tick() == ["complete"]
    assert (len(causes()), len(cases()), balance_of()) == (2, 1, (0, 3000, 9900))


def test_nothing_is_sent_on_a_payment_that_somebody_else_refunds_too(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=7900)
    by_hand(provider)
    tick()
    assert dispatch.send(str(operation.pk)) == "lapsed"
    with pytest.raises(Refusal, match="halted by an open case"):
        approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    assert len(provider.refunds()) == 1


def test_whoever_learns_of_it_first_it_counts_once_and_moves_the_order_once(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    heard: list[outside.Heard] = []

    def hear() -> None:
        heard.append(outside.learn("plain-main", listed("rf_0009")))
        connection.close()

    both = [threading.Thread(target=hear) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert sorted(each.name for each in heard) == ["KNOWN", "NEW"]
    assert (balance_of(), causes()) == ((0, 3000, 9900), ["first_seen", "external"])
    assert Case.objects.count() == 1


def test_what_the_merchants_feed_named_first_is_explained_and_asks_nobody(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    ref = by_hand(provider)
    build.external_refund("4821", 3000, ref=ref)
    tick()
    assert (cases(), causes()) == ([], ["first_seen", "external"])


def test_a_known_one_that_comes_back_no_longer_counts_whatever_the_feed_goes_on_saying(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    ref = by_hand(provider)
    tick()
    turn(provider, ref, "failed")
    later(provider, 301)
    tick()
    assert balance_of() == (0, 0, 12900)
    build.external_refund("4821", 3000, ref=ref)
    assert balance_of() == (0, 0, 12900)
    assert causes() == ["first_seen", "external", "taken_back"]


def test_one_that_was_fed_for_another_payment_counts_on_the_one_it_left(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    build.order("4822")
    ref = by_hand(provider)
    build.external_refund("4822", 3000, ref=ref)
    tick()
    assert (balance_of("pi_4821"), balance_of("pi_4822")) == ((0, 3000, 9900), (0, 0, 12900))
    assert causes("4822")[-1] == "difference"
    assert cases() == []


def test_one_that_failed_before_anybody_saw_it_moved_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    turn(provider, by_hand(provider), "failed")
    tick()
    assert (balance_of(), causes(), cases()) == ((0, 0, 12900), ["first_seen"], [])
    assert ProviderRefund.objects.get().counts is False


@pytest.mark.parametrize(("currency", "amount_minor"), [("EUR", 3000), ("USD", None)])
def test_one_that_cannot_be_counted_stops_the_payment_and_asks_a_person(
    provider: SandboxProcess, cast: Cast, currency: str, amount_minor: int | None
) -> None:
    payment_known(provider)
    shown = listed("rf_0009")
    shown = replace(
        shown, record=replace(shown.record, currency=currency, amount_minor=amount_minor)
    )
    assert outside.learn("plain-main", shown) is outside.Heard.NEW
    assert outside.learn("plain-main", shown) is outside.Heard.KNOWN
    assert (cases(), balance_of()) == ([(["external"], False)], (0, 0, 12900))
    assert Payment.objects.get().halted
    # Nor again the day after people answered, with the list still showing it.
    Case.objects.update(closed_at=timezone.now(), closed_because="It is explained.")
    assert outside.learn("plain-main", shown) is outside.Heard.KNOWN
    assert cases() == []


def test_a_refund_of_a_payment_nobody_fed_is_remembered_and_counts_with_its_order(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    provider.payment("pi_4822")
    ref = by_hand(provider, payment="pi_4822")
    tick()
    assert UnplacedRefund.objects.get().ref == ref
    later(provider, 40 * 60)  # the recent lists no longer show it
    tick()
    build.order("4822")
    assert balance_of("pi_4822") == (0, 3000, 9900)
    assert build.proposed(cast.echo, "4822", 12900).state == states.DENIED
    tick()
    assert cases() == [(["external"], False)]
    assert UnplacedRefund.objects.get().concluded_at is not None
    tick()
    assert len(cases()) == 1


def test_a_remembered_one_that_the_orders_own_feed_names_asks_nobody(
    provider: SandboxProcess, cast: Cast
) -> None:
    payment_known(provider)
    provider.payment("pi_4822")
    ref = by_hand(provider, payment="pi_4822")
    tick()
    named = feed.ExternalRefund(
        payment_ref="pi_4822",
        provider_refund_ref=ref,
        amount_minor=3000,
        provider_status="succeeded",
    )
    build.order("4822", external_refunds=(named,))
    tick()
    assert (cases(), balance_of("pi_4822")) == ([], (0, 3000, 9900))


@pytest.mark.parametrize(("until", "asked"), [(1, False), (0, True)])
def test_in_a_parallel_month_outside_refunds_are_counted_and_nobody_is_asked(
    provider: SandboxProcess,
    cast: Cast,
    settings: Settings,
    tmp_path: Path,
    until: int,
    asked: bool,
) -> None:
    payment_known(provider)
    by_hand(provider)
    day = (timezone.now() + timedelta(days=until)).date()
    written = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(written.replace('"case"', f'"list_until {day}"'))
    policies.current.cache_clear()
    tick()
    assert (balance_of(), causes()[-1]) == ((0, 3000, 9900), "external")
    assert bool(cases()) is Payment.objects.get().halted is asked


def test_our_own_refund_is_found_by_a_lookup_and_never_by_the_list(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    [refund] = provider.refunds()
    tick()
    assert state_of(operation) == states.SUCCEEDED
    assert operation.provider_refunds.get().ref == refund["id"]
    assert operation.events.get(event="found_succeeded").evidence_id == (
        Evidence.objects.get(operation=operation, kind="lookup").pk
    )
    assert (balance_of(), cases()) == ((0, 7900, 5000), [])


def test_a_list_leaves_a_send_in_flight_to_its_own_answer(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold", execute="at_once", seconds=60)
    events: list[str] = []

    def sender() -> None:
        events.append(dispatch.send(str(operation.pk)))
        connection.close()

    sending = threading.Thread(target=sender)
    sending.start()
    provider.wait_for_hold()
    assert tick() == ["complete"]
    assert state_of(operation) == states.SUBMITTING
    assert not Evidence.objects.filter(operation=operation).exists()
    provider.release()
    sending.join(timeout=10)
    assert (events, state_of(operation)) == (["confirmed"], states.SUCCEEDED)


@pytest.mark.parametrize("state", [states.DENIED, states.AUTHORIZED, states.WITHDRAWN])
def test_a_refund_that_carries_the_marker_of_one_never_sent_is_a_contradiction(
    provider: SandboxProcess, cast: Cast, state: str
) -> None:
    payment_known(provider)
    if state == states.DENIED:
        operation = build.proposed(cast.echo, amount_minor=99_000)
    else:
        operation = build.authorized(cast.echo, cast.ben)
    if state == states.WITHDRAWN:
        withdraw(operation.pk, by=Caller(person=cast.ben))
    assert state_of(operation) == state
    amount_minor = operation.amount_minor
    history(provider, past("rf_k1", amount_minor=amount_minor, marker=str(operation.pk)))
    tick()
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(operation) == ["contradiction"]
    assert Payment.objects.get().halted
    assert balance_of()[0] == amount_minor


def test_a_second_refund_under_one_marker_is_a_duplicate_found_without_any_notice(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=4000)
    provider.fault("execute_twice")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    tick()
    assert len(provider.refunds()) == 2
    assert (state_of(operation), open_reasons(operation)) == (states.SUCCEEDED, ["duplicate"])
    assert (balance_of(), Payment.objects.get().halted) == ((0, 8000, 4900), True)
    later(provider, 301)
    tick()
    assert (balance_of(), causes()) == ((0, 8000, 4900), ["first_seen", "reserved", "external"])


def test_what_agrees_costs_no_lookup(provider: SandboxProcess, cast: Cast) -> None:
    operation = authorized(provider, cast)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    tick()
    later(provider, 86_400)
    assert tick() == ["complete", "complete"]
    assert not Evidence.objects.filter(operation=operation, kind="lookup").exists()
    assert feed_again().changed is False
    assert registry.account("plain-main").contract.account_list == "by_creation"
