"""How often an account is asked may stand in the file of the accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from reconciliation import budget
from refunds.providers import registry
from refunds.providers.base import Account

TABLE = '[shop]\nadapter = "stripe"\nbase_url = "https://pay.example"\ncontract = "stripe"\n'
Shop = Callable[[str], Account]


@pytest.fixture
def shop(settings: Settings, tmp_path: Path) -> Iterator[Shop]:
    """The account of a file with these lines in its table."""
    settings.PROVIDERS_FILE = tmp_path / "providers.toml"

    def read(lines: str) -> Account:
        settings.PROVIDERS_FILE.write_text(TABLE + lines)
        registry.accounts.cache_clear()
        return registry.account("shop")

    yield read
    settings.PROVIDERS_FILE = None
    registry.accounts.cache_clear()


@pytest.mark.parametrize(
    ("lines", "pace"),
    [
        ("", (5, 10)),
        ("lookups_per_second = 20\n", (20, 10)),
        ("lookups_per_second = 2\nlookups_burst = 1\n", (2, 1)),
    ],
)
def test_the_budget_keeps_to_the_pace_of_the_file(
    shop: Shop, lines: str, pace: tuple[int, int]
) -> None:
    at = budget.pace(shop(lines).contract, 0, 0, stopped=False)
    assert (at.per_second, at.burst) == pace


@pytest.mark.parametrize("value", ["0", "1001", "2.5", '"5"', "true"])
def test_a_pace_that_is_none_is_refused_by_name(shop: Shop, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="shop: lookups_burst must be a whole number"):
        shop(f"lookups_burst = {value}\n")
