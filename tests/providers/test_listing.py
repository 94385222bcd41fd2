"""Reading all refunds of a payment: complete, or it cannot tell and says why."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from refunds.providers import registry
from refunds.providers.base import Account
from refunds.providers.listing import Listing, read_payment
from tests.provider_process import SandboxProcess


@pytest.fixture(params=["plain-main", "stripe-main"])
def account(request: pytest.FixtureRequest, provider: SandboxProcess) -> Account:
    provider.payment(account=request.param, captured_minor=100_000)
    return registry.account(request.param)


def outside(provider: SandboxProcess, account: Account, count: int) -> list[str]:
    """Refunds made in the provider's dashboard; their references."""
    for _ in range(count):
        fields = {"account": account.name, "payment": "pi_4821", "amount_minor": 1}
        provider.control("POST", "/external_refund", fields)
    return [each["id"] for each in provider.refunds(account.name)]


def listed(account: Account, *, pages_max: int = 50, known_ref: str | None = None) -> Listing:
    return read_payment(
        account,
        "pi_4821",
        known_ref=known_ref,
        pages_max=pages_max,
        total_seconds=10,
        body_bytes_max=262_144,
    )


def test_an_empty_list_is_complete(account: Account) -> None:
    listing = listed(account)
    assert (listing.complete, listing.pages, listing.records) == (True, 1, ())


def test_every_page_is_read(provider: SandboxProcess, account: Account) -> None:
    refs = outside(provider, account, 101)
    listing = listed(account)
    assert (listing.complete, listing.pages) == (True, 2)
    assert sorted(each.ref for each in listing.records) == sorted(refs)
    short = listed(account, pages_max=1)
    assert (short.complete, short.because) == (False, "the list has more than 1 pages")


@pytest.mark.parametrize(
    ("fault", "options", "because"),
    [
        ("list_cursor_loop", {}, "circle"),
        ("list_ignores_filter", {}, "refunds of other payments"),
        ("lookup_503", {}, "HTTP 503"),
        ("html_200", {}, "not JSON"),
        ("truncated", {}, "without a whole answer"),
        ("bad_json", {}, "not readable JSON"),
        ("huge_body", {}, "longer than"),
        ("auth_401", {}, "HTTP 401"),
        ("rate_429", {}, "HTTP 429"),
        ("drop_after_commit", {}, "closed"),
        ("redirect", {}, "HTTP 303"),
    ],
)
def test_anything_odd_on_the_way_cannot_tell(
    provider: SandboxProcess, account: Account, fault: str, options: dict[str, Any], because: str
) -> None:
    outside(provider, account, 101)
    provider.payment("pi_4822", account=account.name)
    fields = {"account": account.name, "payment": "pi_4822", "amount_minor": 1}
    provider.control("POST", "/external_refund", fields)
    provider.fault(fault, account=account.name, on="list", times=None, **options)
    listing = listed(account)
    assert not listing.complete
    assert because in listing.because


def test_what_was_read_before_the_list_broke_is_kept(
    provider: SandboxProcess, account: Account
) -> None:
    outside(provider, account, 101)
    provider.fault("lookup_503", account=account.name, on="list", after=1)
    listing = listed(account)
    assert (listing.complete, listing.pages, len(listing.records)) == (False, 2, 100)


def test_a_known_refund_that_the_list_lacks_is_retrieved(
    provider: SandboxProcess, account: Account
) -> None:
    [ref] = outside(provider, account, 1)
    provider.fault("list_lag", account=account.name, on="list", times=None, seconds=60)
    listing = listed(account, known_ref=ref)
    assert [each.ref for each in listing.records] == [ref]
    assert listing.complete


def test_a_known_refund_that_nobody_shows_cannot_tell(account: Account) -> None:
    listing = listed(account, known_ref=f"rf_{uuid.uuid4().hex}")
    assert not listing.complete
    assert "is known but not listed" in listing.because
