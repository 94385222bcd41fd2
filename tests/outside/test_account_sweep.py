"""Reading an account's lists: to the end or not at all, from a cursor, and the weeks again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from reconciliation import account_sweep
from reconciliation.models import AccountSweep
from refunds.ledger import database_now
from refunds.ledger.sending import pause, resume
from refunds.models import Dispute, Order, Payment, UnplacedRefund
from tests import build
from tests.bugs.steps import balance_of
from tests.cast import Cast
from tests.outside.steps import (
    DAY,
    by_hand,
    cases,
    causes,
    dispute,
    feed_again,
    history,
    later,
    past,
    tick,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def known(provider: SandboxProcess, account: str = "plain-main") -> Order:
    provider.payment(account=account)
    return build.order(account=account)


def recent(account: str = "plain-main") -> AccountSweep:
    return AccountSweep.objects.get(provider_account=account, kind="recent")


def test_a_list_that_was_not_read_to_its_end_moves_no_cursor(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    assert tick() == ["complete"]
    by_hand(provider)
    later(provider, 301)
    covered = recent().covered_until
    for fault, because in {
        "lookup_503": "HTTP 503",
        "list_missing_page": "HTTP 404",
        "list_cursor_loop": "circle",
        "truncated": "whole answer",
        "auth_401": "HTTP 401",
        "wrong_mode": "mode test",
    }.items():
        provider.fault(fault, on="list", times=None)
        AccountSweep.objects.filter(kind="recent").update(due_at=timezone.now())
        [why] = tick()
        assert because in why
        assert (recent().covered_until, recent().because) == (covered, why)
        provider.clear_faults()
    assert account_sweep.covered("plain-main", timezone.now()) == covered
    assert tick() == []  # not again at once
    later(provider, 61)
    assert tick() == ["complete"]
    assert (balance_of(), recent().because) == ((0, 3000, 9900), "")


def test_what_an_incomplete_list_showed_is_learnt_all_the_same(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    for _ in range(2):
        by_hand(provider, 100)
    provider.fault("list_missing_page", on="list", times=None)
    tick()
    assert balance_of() == (0, 100, 12800)


def test_every_page_is_read_in_as_many_steps_as_it_takes(
    provider: SandboxProcess, cast: Cast, settings: Settings
) -> None:
    account = "stripe-main"
    known(provider, account)
    provider.payment("pi_9", 100_000, account=account)
    history(
        provider,
        *(past(f"r_{no}", amount_minor=1, payment="pi_9", account=account) for no in range(101)),
    )
    settings.LIMITS = replace(settings.LIMITS, account_sweep_pages_max=1)
    assert tick() == ["goes on"]
    assert UnplacedRefund.objects.count() == 100
    assert recent(account).covered_until is None
    assert tick() == ["goes on"]  # to the disputes
    assert tick() == ["complete"]
    assert UnplacedRefund.objects.count() == 101


def test_what_changed_weeks_later_is_seen_by_the_daily_reading(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    ref = by_hand(provider)
    tick()
    later(provider, 20 * DAY)
    provider.control("POST", f"/refunds/{ref}/status", {"to": "canceled"})
    tick()
    assert balance_of() == (0, 0, 12900)
    assert causes()[-1] == "taken_back"


def test_after_a_pause_the_lists_are_read_at_once(provider: SandboxProcess, cast: Cast) -> None:
    known(provider)
    tick()
    pause("plain-main", kind="credential", reason="refused", by="dispatcher")
    assert tick() == []
    resume("plain-main", by="ines")
    assert tick() == ["complete"]
    assert tick() == []


def test_an_account_is_read_by_one_worker_at_a_time_and_never_inside_a_transaction(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    account_sweep.ring_for_due(timezone.now())
    AccountSweep.objects.update(busy_until=timezone.now() + timedelta(seconds=90))
    assert account_sweep.sweep_account("plain-main") == []
    assert tick() == []
    later(provider, 91)
    assert tick() == ["complete"]
    with transaction.atomic(), pytest.raises(AssertionError):
        account_sweep.sweep_account("plain-main")


def test_an_account_without_lists_or_payments_is_asked_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider, "plain-blind")
    assert tick() == []
    assert provider.calls() == []


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_a_dispute_closes_the_payment_and_a_won_one_opens_it_again(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    known(provider, account)
    dispute(provider, "opened", account)
    tick()
    assert (Payment.objects.get().state, causes()[-1]) == ("disputed", "dispute")
    # A feed that has not heard of it opens nothing.
    build.order(account=account)
    assert Payment.objects.get().state == "disputed"
    dispute(provider, "won", account)
    later(provider, 301)
    tick()
    assert (Payment.objects.get().state, causes()) == (
        "captured",
        ["first_seen", "dispute", "dispute"],
    )
    later(provider, 301)
    tick()
    assert len(causes()) == 3


def test_a_lost_dispute_takes_the_payment_back_for_good(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    dispute(provider, "opened")
    tick()
    later(provider, 40 * DAY)
    tick()
    # Disputes last for months: the daily reading goes back to the oldest one that is open.
    [*_, asked] = [each["path"] for each in provider.calls() if "/disputes" in each["path"]]
    since = datetime.fromisoformat(parse_qs(urlsplit(asked).query)["created_from"][0])
    assert timezone.now() - since > timedelta(days=39)
    dispute(provider, "lost")
    later(provider, 301)
    tick()
    assert (Payment.objects.get().state, cases()) == ("reversed", [])
    build.order(state="captured")
    assert Payment.objects.get().state == "reversed"


def test_a_dispute_of_a_payment_nobody_fed_closes_it_when_its_order_comes(
    provider: SandboxProcess, cast: Cast
) -> None:
    known(provider)
    provider.payment("pi_4822")
    fields = {"account": "plain-main", "payment": "pi_4822"}
    provider.control("POST", "/dispute", fields)
    tick()
    assert Dispute.objects.get().payment is None
    build.order("4822")
    assert Payment.objects.get(ref="pi_4822").state == "disputed"


def test_a_reversed_capture_that_the_feed_told_is_not_opened_by_an_old_won_dispute(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order(state="reversed")
    dispute(provider, "won")
    tick()
    assert Payment.objects.get().state == "reversed"
    assert feed_again().changed is False


def test_a_worker_whose_clock_is_ahead_does_not_say_that_it_read_what_is_to_come(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a quarantine could be lifted by a list that was read before it began (rule 3)."""
    known(provider)
    ahead = timedelta(minutes=5)
    usual = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: usual() + ahead)
    account_sweep.ring_for_due(database_now())
    assert account_sweep.sweep_account("plain-main") == ["complete"]
    until = account_sweep.covered("plain-main", database_now())
    assert until is not None
    assert until <= database_now()
