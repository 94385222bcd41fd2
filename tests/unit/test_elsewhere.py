"""The setting of a parallel month: what it reads, what it refuses, and whom it asks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from refunds.domain import elsewhere
from refunds.domain.policy import PolicyUnreadable, parse
from refunds.providers import registry

LAST_OF_NOVEMBER = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
FIRST_OF_DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)
TABLE = '[shop]\nadapter = "plain"\nbase_url = "https://pay.example"\ncontract = "plain-main"\n'


def test_a_person_is_asked_from_the_day_on_and_always_where_no_day_is_set() -> None:
    rule = elsewhere.parse("list_until 2026-12-01")
    assert [rule.asks_a_person(at) for at in (LAST_OF_NOVEMBER, FIRST_OF_DECEMBER)] == [False, True]
    assert elsewhere.parse("case").asks_a_person(LAST_OF_NOVEMBER)


@pytest.mark.parametrize("value", ["", "never", "list_until", "list_until soon", 3, None, "Case"])
def test_any_other_word_is_refused_with_what_to_write(value: object) -> None:
    with pytest.raises(ValueError, match='such as "list_until 2026-12-31"'):
        elsewhere.parse(value)


def test_the_policy_file_may_set_it_and_names_it_when_it_is_wrong(settings: Settings) -> None:
    written = settings.POLICY_FILE.read_bytes()
    assert parse(written).external_refunds.listed_until is None
    listed = written.replace(b'"case"', b'"list_until 2026-12-01"')
    assert str(parse(listed).external_refunds.listed_until) == "2026-12-01"
    with pytest.raises(PolicyUnreadable, match="external_refunds: 'ignore'"):
        parse(written.replace(b'"case"', b'"ignore"'))


def test_an_account_may_have_a_month_of_its_own(settings: Settings, tmp_path: Path) -> None:
    settings.PROVIDERS_FILE = tmp_path / "providers.toml"
    settings.PROVIDERS_FILE.write_text(f'{TABLE}external_refunds = "list_until 2026-12-01"\n')
    registry.accounts.cache_clear()
    try:
        own = registry.account("shop").external_refunds
        assert own is not None
        assert not own.asks_a_person(LAST_OF_NOVEMBER)
        settings.PROVIDERS_FILE.write_text(f'{TABLE}external_refunds = "off"\n')
        registry.accounts.cache_clear()
        with pytest.raises(ImproperlyConfigured, match="shop: external_refunds: 'off'"):
            registry.accounts()
    finally:
        settings.PROVIDERS_FILE = None
        registry.accounts.cache_clear()
