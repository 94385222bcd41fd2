"""What the settings of signing in refuse, each with a sentence and before anything starts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config import env

OIDC = {
    "id": "shop",
    "name": "Shop login",
    "server_url": "https://login.shop.example",
    "client_id": "aftersend",
    "secret": "a-client-secret",
    "roles": {"refund-leads": "lead"},
}
PRODUCTION = {
    "AFTERSEND_ENV": "production",
    "AFTERSEND_SECRET_KEY": "s" * 50,
    "AFTERSEND_KEY_PEPPER": "p" * 50,
    "DATABASE_URL": "postgresql://a@b/c",
    "CELERY_BROKER_URL": "amqps://a@b//",
    "CACHE_URL": "rediss://b/1",
    "AFTERSEND_BASE_URL": "https://refunds.example",
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The environment of a production with more variables, or fewer."""
    monkeypatch.delenv("AFTERSEND_LIMITS", raising=False)

    def load(**more: str) -> env.Environment:
        for name, value in (PRODUCTION | more).items():
            monkeypatch.setenv(name, value)
        return env.load()

    return load


def test_production_wants_a_second_factor_without_being_told(given: Any) -> None:
    assert given().wants_second_factor


def test_demo_and_tests_go_without_until_they_ask(given: Any) -> None:
    assert not given(AFTERSEND_ENV="demo").wants_second_factor
    assert given(AFTERSEND_ENV="demo", AFTERSEND_SECOND_FACTOR="on").wants_second_factor


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"AFTERSEND_SECOND_FACTOR": "off"}, "production needs it on"),
        ({"AFTERSEND_SECOND_FACTOR": "perhaps"}, "AFTERSEND_SECOND_FACTOR: Input should be 'on'"),
        ({"AFTERSEND_OIDC": "{"}, "AFTERSEND_OIDC: must be JSON"),
        ({"AFTERSEND_LIMITS": "{"}, "it must be JSON"),
        ({"AFTERSEND_OIDC": json.dumps(OIDC | {"roles": {"x": "king"}})}, "king is no role here"),
        ({"AFTERSEND_OIDC": json.dumps(OIDC | {"server_url": "shop"})}, "https:// address"),
        (
            {"AFTERSEND_OIDC": json.dumps(OIDC | {"server_url": "http://login.shop.example"})},
            "server_url must begin with https://",
        ),
        ({"AFTERSEND_OIDC": json.dumps(OIDC | {"more": 1})}, "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_value_ends_the_start_with_a_sentence(
    given: Any, more: dict[str, str], sentence: str
) -> None:
    with pytest.raises(SystemExit, match="not usable") as ended:
        given(**more)
    assert sentence in str(ended.value)
    assert "a-client-secret" not in str(ended.value)


def test_a_provider_becomes_one_entry_of_allauths_table(given: Any) -> None:
    oidc = given(AFTERSEND_OIDC=json.dumps(OIDC)).oidc
    table: Any = env.social_providers(oidc)
    assert table["openid_connect"]["APPS"][0]["provider_id"] == "shop"
    assert table["openid_connect"]["OAUTH_PKCE_ENABLED"] is True
    assert "a-client-secret" not in repr(oidc)
