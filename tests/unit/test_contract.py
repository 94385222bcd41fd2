"""What automation may do with each account, and when absence may be believed."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from refunds.domain.contract import (
    UNKNOWN_FACT,
    Allowed,
    Fact,
    ProviderContract,
    allowed,
    quiet_until,
)
from refunds.providers import plain, stripe

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
ACCOUNTS = {**plain.CONTRACTS, "stripe": stripe.CONTRACT}
# account: success by lookup, success by notice, resend in the window, absence
MAY = {
    "plain-main": (True, True, True, True),
    "plain-forever": (True, True, True, True),
    "plain-weak": (True, True, False, True),
    "plain-nokeys": (True, True, False, True),
    "plain-blind": (False, False, False, False),
    "plain-hooks": (False, True, False, False),
    "plain-lagged": (True, True, True, True),
    "plain-unbounded": (True, True, False, False),
    "plain-async": (True, True, True, True),
    "plain-stored500": (False, False, True, False),
    "stripe": (True, True, False, False),
}


def test_every_account_is_in_the_table() -> None:
    assert set(ACCOUNTS) == set(MAY)


@pytest.mark.parametrize("name", sorted(MAY))
def test_what_automation_may_do_with_an_account_follows_from_its_contract(name: str) -> None:
    lookup, notice, resend, absence = MAY[name]
    may = allowed(ACCOUNTS[name])
    assert may == Allowed(
        success_by_lookup=lookup, success_by_notice=notice, resend_in_window=resend, absence=absence
    )
    assert may.can_settle == any(MAY[name][:3])


@pytest.mark.parametrize(
    ("fact", "loses"),
    [
        ("flight_max", {"resend_in_window", "absence"}),
        ("idle_close", {"resend_in_window", "absence"}),
        ("lookup_lag", {"absence"}),
        ("key_window", {"resend_in_window"}),
    ],
)
def test_an_unknown_fact_has_its_safest_value(fact: str, loses: set[str]) -> None:
    before = allowed(plain.CONTRACTS["plain-main"])
    after = allowed(plain.CONTRACTS["plain-main"].with_changes(**{fact: UNKNOWN_FACT}))
    for each in fields(Allowed):
        assert getattr(before, each.name)
        assert getattr(after, each.name) == (each.name not in loses), each.name


def test_a_key_that_lives_for_ever_needs_no_bound_on_the_flight() -> None:
    forever = plain.CONTRACTS["plain-forever"].with_changes(
        flight_max=UNKNOWN_FACT, idle_close=UNKNOWN_FACT
    )
    assert allowed(forever).resend_in_window
    assert not allowed(forever).absence


def _contract(**seconds: int | None) -> ProviderContract:
    facts: dict[str, Any] = {
        name: Fact(value, "measured", "this test") for name, value in seconds.items()
    }
    return ProviderContract(name="test", keys="none", lookup="now", **facts)


def _at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("last_writes", "ends"),
    [
        # One attempt, no stop proof: deadline + I + D + V + 2 skew.
        ([(0, False)], 3 + 20 + 100 + 10),
        # Its sender is known to have stopped: I does not count.
        ([(0, True)], 20 + 100 + 10),
        # The latest possible write of all attempts counts, not that of the first or the last.
        ([(0, False), (50, True)], 50 + 20 + 100 + 10),
        ([(49, False), (50, True)], 49 + 3 + 20 + 100 + 10),
        ([(50, True), (0, False)], 50 + 20 + 100 + 10),
    ],
)
def test_the_quiet_period_ends_after_the_last_possible_landing(
    last_writes: list[tuple[int, bool]], ends: int
) -> None:
    contract = _contract(idle_close=3, flight_max=20, lookup_lag=100)
    writes = [(_at(at), stopped) for at, stopped in last_writes]
    assert quiet_until(contract, writes, skew_seconds=5) == _at(ends)


@pytest.mark.parametrize(
    ("unknown", "stopped", "ever"),
    [
        ("flight_max", True, False),
        ("lookup_lag", True, False),
        ("idle_close", False, False),
        ("idle_close", True, True),
    ],
)
def test_without_a_bound_the_quiet_period_never_ends(
    unknown: str, stopped: bool, ever: bool
) -> None:
    facts: dict[str, int | None] = {"idle_close": 3, "flight_max": 20, "lookup_lag": 100}
    contract = _contract(**(facts | {unknown: None}))
    assert (quiet_until(contract, [(NOON, stopped)], 5) is not None) is ever


def test_one_unstopped_sender_is_enough_to_never_be_quiet() -> None:
    contract = _contract(idle_close=None, flight_max=20, lookup_lag=100)
    assert quiet_until(contract, [(NOON, True), (NOON, False)], 5) is None


def test_nothing_was_written_nothing_to_wait_for_is_not_concluded() -> None:
    contract = _contract(idle_close=3, flight_max=20, lookup_lag=100)
    assert quiet_until(contract, [], 5) is None


def test_the_hash_of_a_contract_changes_with_every_fact() -> None:
    first = plain.CONTRACTS["plain-main"]
    changed: dict[str, Any] = {
        "name": "other",
        "keys": "forever",
        "key_window": Fact(601, "measured", "x"),
        "rejections_stored": False,
        "lookup": "lagged",
        "account_list": "none",
        "flight_max": Fact(3, "measured", "x"),
        "lookup_lag": Fact(2, "measured", "x"),
        "idle_close": Fact(2, "measured", "x"),
        "notice": "proof",
        "server_errors_replayed": True,
        "polices_totals": False,
        "watch_after_success_days": 4,
        "unknown_target_seconds": 901,
        "normal_window_seconds": 6,
        "escalation_grace_seconds": 11,
        "lookup_schedule": (1,),
    }
    assert set(changed) == {each.name for each in fields(ProviderContract)}
    hashes = {replace(first, **{name: value}).hash() for name, value in changed.items()}
    assert len(hashes | {first.hash()}) == len(changed) + 1
    assert first.hash() == replace(first).hash()


def test_the_facts_of_a_real_provider_say_where_they_come_from() -> None:
    for each in fields(ProviderContract):
        fact = getattr(stripe.CONTRACT, each.name)
        if isinstance(fact, Fact) and fact.seconds is not None:
            assert (fact.basis, fact.source.startswith("docs.stripe.com")) == ("documented", True)
    assert stripe.CONTRACT.flight_max.seconds is None
    assert stripe.CONTRACT.lookup_lag.seconds is None
    assert stripe.CONTRACT.idle_close.seconds is None
