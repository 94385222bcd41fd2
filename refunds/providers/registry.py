"""The accounts of this installation: from a file, from the sandbox, or from one key alone.

The file (AFTERSEND_PROVIDERS, TOML) has a table per account: adapter, base_url, contract, mode,
region, external_refunds, lookups_per_second, lookups_burst, credential_ends. A key named
AFTERSEND_PROVIDER_STRIPE_EU_KEY is enough for a real Stripe account called
stripe-eu. Without a file, demo and tests get the sandbox's accounts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from refunds.domain import elsewhere
from refunds.domain.contract import ProviderContract
from refunds.domain.elsewhere import Elsewhere
from refunds.domain.errors import Refusal
from refunds.providers import plain, plain_contracts, stripe
from refunds.providers.base import Account, Adapter

ADAPTERS: dict[str, Adapter] = {"plain": plain.Plain(), "stripe": stripe.Stripe()}
CONTRACTS: dict[str, ProviderContract] = {
    **plain_contracts.CONTRACTS,
    plain_contracts.UNMARKED.name: plain_contracts.UNMARKED,
    "stripe": stripe.CONTRACT,
}
_PACE = ("lookups_per_second", "lookups_burst")
_PACE_MAX = 1000
_COLUMNS = frozenset(
    {
        *("adapter", "base_url", "contract", "mode", "region", "external_refunds"),
        *("credential_ends", *_PACE),
    }
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SANDBOX_STRIPE = stripe.CONTRACT.with_changes(
    name="stripe-sandbox",
    normal_window_seconds=5,
    escalation_grace_seconds=10,
    lookup_schedule=(1, 2, 4, 8, 15, 30),
    lookups_per_second=100,
    lookups_burst=200,
)


@cache
def accounts() -> Mapping[str, Account]:
    """Every account by name; raises ImproperlyConfigured with the account and what is wrong."""
    found = _sandbox() if settings.SANDBOX else {}
    if settings.PROVIDERS_FILE is not None:
        found |= _from_file(settings.PROVIDERS_FILE)
    for name, key in settings.PROVIDER_KEYS.items():
        if name not in found and name.split("-")[0] == "stripe":
            mode = "test" if key.startswith(("sk_test_", "rk_test_")) else "live"
            found[name] = _account(name, "stripe", stripe.LIVE_URL, stripe.CONTRACT, mode=mode)
    return found


def account(name: str) -> Account:
    """One account; raises Refusal account_unknown."""
    try:
        return accounts()[name]
    except KeyError:
        raise Refusal(
            "account_unknown",
            f"{name!r} is not a provider account of this installation.",
            what_to_do=f"Use one of: {', '.join(sorted(accounts()))}.",
            field="provider_account",
        ) from None


def adapter(of: Account) -> Adapter:
    """The adapter that speaks the account's dialect."""
    return ADAPTERS[of.adapter]


def _account(
    name: str,
    kind: str,
    base_url: str,
    contract: ProviderContract,
    credential: str | None = None,
    webhook_secrets: tuple[str, ...] = (),
    **more: Any,
) -> Account:
    return Account(
        name=name,
        adapter=kind,
        base_url=base_url.rstrip("/"),
        contract=contract,
        credential=settings.PROVIDER_KEYS.get(name) or credential,
        api_version=ADAPTERS[kind].api_version,
        webhook_secrets=settings.WEBHOOK_SECRETS.get(name) or webhook_secrets,
        **more,
    )


def _sandbox() -> dict[str, Account]:
    base = settings.SANDBOX_URL or "http://127.0.0.1:8010"
    found = {
        name: _account(
            name,
            "plain",
            f"{base}/plain/{name}",
            contract,
            mode="sandbox",
            credential=f"sandbox-key-{name}",
            webhook_secrets=(f"sandbox-webhook-secret-{name}",),
        )
        for name, contract in plain_contracts.CONTRACTS.items()
    }
    found["stripe-main"] = _account(
        "stripe-main",
        "stripe",
        f"{base}/stripe/stripe-main",
        SANDBOX_STRIPE,
        mode="sandbox",
        credential="sandbox-key-stripe-main",
        webhook_secrets=("sandbox-webhook-secret-stripe-main",),
    )
    return found


def _from_file(path: Path) -> dict[str, Account]:
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(
            f"AFTERSEND_PROVIDERS: {path} is not readable: {error}"
        ) from error
    return {name: _row(name, row) for name, row in table.items()}


def _row(name: str, row: Any) -> Account:
    if not isinstance(row, dict):
        raise ImproperlyConfigured(f"{name}: write a table with adapter, base_url and contract")
    unknown = set(row) - _COLUMNS
    if unknown:
        raise ImproperlyConfigured(f"{name}: unknown names {', '.join(sorted(unknown))}")
    if row.get("adapter") not in ADAPTERS:
        raise ImproperlyConfigured(f"{name}: adapter must be one of {', '.join(sorted(ADAPTERS))}")
    if row.get("contract") not in CONTRACTS:
        raise ImproperlyConfigured(
            f"{name}: contract must be one of {', '.join(sorted(CONTRACTS))}"
        )
    base_url = str(row.get("base_url", ""))
    parts = urlsplit(base_url)
    loopback = parts.hostname in _LOOPBACK and settings.ALLOW_LOOPBACK_PROVIDERS
    if not parts.hostname or (parts.scheme != "https" and not loopback):
        raise ImproperlyConfigured(f"{name}: base_url must be https")
    return _account(
        name,
        row["adapter"],
        base_url,
        CONTRACTS[row["contract"]].with_changes(**_pace(name, row)),
        external_refunds=_external_refunds(name, row.get("external_refunds")),
        mode=str(row.get("mode", "live")),
        region=str(row.get("region", "")),
        credential_ends=_day(name, row.get("credential_ends")),
    )


def _pace(name: str, row: dict[str, Any]) -> dict[str, int]:
    """How often this account may be asked, where the file says other than the contract."""
    given = {each: row[each] for each in _PACE if each in row}
    for each, value in given.items():
        if type(value) is not int or not 1 <= value <= _PACE_MAX:
            raise ImproperlyConfigured(
                f"{name}: {each} must be a whole number from 1 to {_PACE_MAX}, not {value!r}"
            )
    return given


def _day(name: str, value: Any) -> date | None:
    """TOML has days of its own; a text or an instant is none."""
    if value is None or type(value) is date:
        return value
    raise ImproperlyConfigured(f"{name}: credential_ends must be a day, as 2027-01-31 unquoted")


def _external_refunds(name: str, value: Any) -> Elsewhere | None:
    try:
        return None if value is None else elsewhere.parse(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: external_refunds: {error}") from error
