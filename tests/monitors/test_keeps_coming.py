"""Monitors of what must keep coming: lists, reports, keys, standbys, and messages that are taken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from pytest_django import Settings

from reconciliation.models import AccountSweep, Delivery, SettlementLine
from reconciliation.monitors import run, standbys
from reconciliation.monitors.standbys import Standby
from refunds.providers import registry
from tests.cast import Cast
from tests.monitors.stage import fires, read

pytestmark = pytest.mark.django_db
HOUR, DAY = 3600, 86_400
KeyEnds = Callable[[str], None]


@pytest.fixture
def key_ends(settings: Settings, tmp_path: Path) -> Any:
    """Two accounts of a file; one names the end of its key, as TOML."""

    def say(written: str) -> None:
        table = 'adapter = "plain"\nbase_url = "https://a.example"\ncontract = "plain-main"\n'
        settings.PROVIDERS_FILE = tmp_path / "providers.toml"
        settings.PROVIDERS_FILE.write_text(
            f"[shop-us]\n{table}[shop-eu]\n{table}credential_ends = {written}\n"
        )
        registry.accounts.cache_clear()

    yield say
    registry.accounts.cache_clear()


@pytest.mark.parametrize(
    ("name", "kind", "ages"),
    [
        ("lists_old", "recent", (800, 1000, 2 * HOUR + 60)),
        ("weeks_old", "deep", (29 * HOUR, 31 * HOUR, 73 * HOUR)),
    ],
)
def test_lists_that_are_not_read_to_their_end_fire_by_what_they_cover(
    cast: Cast, name: str, kind: str, ages: tuple[float, float, float]
) -> None:
    now = timezone.now()
    row = AccountSweep.objects.create(
        provider_account="plain-main", kind=kind, due_at=now, because="HTTP 503"
    )
    assert fires(name) == {}
    for age, wanted in zip(ages, ({}, "warn", "page"), strict=True):
        # Never read to the end, it is as old as the wish; read once, as old as what that covered.
        for stood_by, covered in ((age, None), (9 * DAY, age)):
            row.stood_by_at = now - timedelta(seconds=stood_by)
            row.covered_until = None if covered is None else now - timedelta(seconds=covered)
            row.save()
            assert fires(name) == ({"plain-main": wanted} if wanted else {})
    assert "Now: HTTP 503." in read(name)[0].says


def test_an_account_without_lists_has_none_that_are_old(cast: Cast) -> None:
    at = timezone.now() - timedelta(days=9)
    AccountSweep.objects.create(
        provider_account="plain-blind", kind="recent", due_at=at, covered_until=at
    )
    assert fires("lists_old") == {}


def test_a_message_that_nobody_tries_any_more_warns_of_its_receiver(cast: Cast) -> None:
    def message(state: str) -> None:
        Delivery.objects.create(
            pk=uuid4(),
            receiver="shop",
            kind="ticket_update",
            state=state,
            due_at=timezone.now(),
            give_up_at=timezone.now(),
        )

    message("waiting")
    assert fires("messages_given_up") == {}
    message("given_up")
    assert fires("messages_given_up") == {"shop": "warn"}


def test_reports_that_came_once_and_come_no_more_fire_by_their_age(cast: Cast) -> None:
    assert fires("settlement_silent") == {}  # an account that has none is no silence
    values: dict[str, Any] = {
        "provider_account": "plain-main",
        "payment_ref": "pi_1",
        "amount_minor": 1,
        "currency": "USD",
        "verdict": "match",
    }
    for number, (days, wanted) in enumerate([(6, "page"), (3, "warn"), (1, "")]):
        at = timezone.now() - timedelta(days=days)
        SettlementLine.objects.create(**values, provider_refund_ref=f"rf_{number}", imported_at=at)
        assert fires("settlement_silent") == ({"plain-main": wanted} if wanted else {})


@pytest.mark.parametrize(
    ("days", "wanted"), [(22, ""), (20, "warn"), (4, "warn"), (2, "page"), (-5, "page")]
)
def test_a_key_that_ends_soon_fires_by_the_days_that_are_left(
    cast: Cast, key_ends: KeyEnds, days: int, wanted: str
) -> None:
    key_ends(f"{timezone.now() + timedelta(days=days):%Y-%m-%d}")
    assert fires("credential_expires") == ({"shop-eu": wanted} if wanted else {})


@pytest.mark.parametrize("written", ['"2027-01-31"', "2027-01-31T00:00:00Z", "20270131"])
def test_an_end_of_a_key_that_is_no_day_stops_at_the_start(key_ends: KeyEnds, written: str) -> None:
    key_ends(written)
    with pytest.raises(ImproperlyConfigured, match="shop-eu: credential_ends must be a day"):
        registry.accounts()


SYNC = Standby("b", "streaming", "sync", 0.1)


@pytest.mark.parametrize(
    ("named", "there", "wanted"),
    [
        ("", (), False),
        ("ANY 1 (b)", (), True),
        ("ANY 1 (b)", (SYNC,), False),
        ("ANY 1 (b)", (SYNC._replace(sync_state="quorum"),), False),
        ("ANY 1 (b)", (SYNC._replace(sync_state="async"),), True),
        ("ANY 1 (b)", (SYNC._replace(state="catchup"),), True),
        ("", (SYNC._replace(state=None, sync_state=None),), False),
    ],
)
def test_a_synchronous_standby_that_the_settings_name_is_missed(
    named: str, there: tuple[Standby, ...], wanted: bool
) -> None:
    assert standbys.is_missing(named, there) is wanted


def test_standbys_that_our_role_may_not_see_are_no_data_and_not_all_clear() -> None:
    with pytest.raises(standbys.CannotSee, match="pg_read_all_stats"):
        standbys.is_missing("ANY 1 (b)", [SYNC._replace(state=None, sync_state=None)])


def test_a_database_that_names_no_standby_misses_none_and_is_read_as_it_is(cast: Cast) -> None:
    assert (read("standby_missing"), read("replication_lag")) == ([], [])
    run.read_all({}, timezone.now())
    assert fires("standby_missing") == {}
