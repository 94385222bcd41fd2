"""What automation may do with each account, and when absence may be believed."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from refunds.domain.contract import (
    UNKNOWN_FACT,
    Accepted,
    Allowed,
    Fact,
    ProviderContract,
    Source,
    allowed,
    as_accepted,
    from_facts,
    quiet_until,
    stricter,
    unrecorded,
)
from refunds.providers import plain_contracts, stripe

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
ACCOUNTS = {**plain_contracts.CONTRACTS, "stripe": stripe.CONTRACT}
# account: success by lookup, success by notice, resend by key (or always), absence ends it,
# absence sends it again
MAY: dict[str, tuple[bool, bool, str, bool, bool]] = {
    "plain-main": (True, True, "window", True, True),
    "plain-forever": (True, True, "always", True, True),
    "plain-weak": (True, True, "never", True, True),
    "plain-nokeys": (True, True, "never", True, True),
    "plain-blind": (False, False, "never", False, False),
    "plain-hooks": (False, True, "never", False, False),
    "plain-lagged": (True, True, "window", True, True),
    "plain-unbounded": (True, True, "never", False, False),
    "plain-async": (True, True, "always", True, True),
    "plain-stored500": (False, False, "always", False, False),
    "stripe": (True, True, "never", False, False),
}
FOR_RESENDS = Accepted(1, "flight_max", 3600, "resend")
FOR_ABSENCE = (Accepted(2, "flight_max", 3600, "absence"), Accepted(3, "lookup_lag", 60, "absence"))


def test_every_account_is_in_the_table() -> None:
    assert set(ACCOUNTS) == set(MAY)


@pytest.mark.parametrize("name", sorted(MAY))
def test_what_automation_may_do_with_an_account_follows_from_its_contract(name: str) -> None:
    lookup, notice, resend, absence, again = MAY[name]
    may = allowed(ACCOUNTS[name])
    assert may == Allowed(
        success_by_lookup=lookup,
        success_by_notice=notice,
        resend_in_window=resend != "never",
        resend_always=resend == "always",
        absence=absence,
        again_after_absence=again,
    )
    assert may.can_settle == (lookup or notice or resend != "never")


def test_an_accepted_flight_bound_lets_stripe_be_sent_again_and_nothing_else() -> None:
    before, after = (
        allowed(stripe.CONTRACT),
        allowed(stripe.CONTRACT, accepted=(FOR_RESENDS,)),
    )
    assert after == replace(before, resend_in_window=True, needs_stop_proof=True)


def test_an_accepted_absence_ends_an_operation_and_never_sends_it_again() -> None:
    may = allowed(stripe.CONTRACT, accepted=FOR_ABSENCE)
    assert (may.absence, may.again_after_absence, may.resend_in_window) == (True, False, False)
    half = allowed(stripe.CONTRACT, accepted=FOR_ABSENCE[:1])
    assert half == allowed(stripe.CONTRACT)


@pytest.mark.parametrize("name", ["plain-weak", "plain-nokeys", "plain-blind"])
def test_nothing_accepted_stands_in_for_a_key(name: str) -> None:
    contract = ACCOUNTS[name].with_changes(flight_max=UNKNOWN_FACT)
    assert not allowed(contract, accepted=(FOR_RESENDS,)).resend_in_window


def test_what_is_accepted_never_replaces_what_the_provider_states() -> None:
    stated = plain_contracts.CONTRACTS["plain-main"]
    loose = Accepted(1, "flight_max", 1, "resend"), Accepted(2, "flight_max", 1, "absence")
    assert as_accepted(stated, loose, "resend") == (stated, ())
    assert as_accepted(stated, loose, "absence") == (stated, ())


def test_what_is_accepted_for_one_act_serves_no_other() -> None:
    taken, named = as_accepted(stripe.CONTRACT, (FOR_RESENDS, *FOR_ABSENCE), "resend")
    assert (taken.flight_max.seconds, taken.lookup_lag.seconds, named) == (3600, None, (1,))
    assert taken.flight_max.basis == "accepted"
    taken, named = as_accepted(stripe.CONTRACT, (FOR_RESENDS, *FOR_ABSENCE), "absence")
    assert (taken.flight_max.seconds, taken.lookup_lag.seconds, named) == (3600, 60, (2, 3))


@pytest.mark.parametrize(
    ("fact", "changed"),
    [
        ("flight_max", {"resend_in_window", "absence", "again_after_absence"}),
        ("idle_close", {"needs_stop_proof", "resend_in_window"}),
        ("lookup_lag", {"absence", "again_after_absence"}),
        ("key_window", {"resend_in_window"}),
    ],
)
def test_an_unknown_fact_has_its_safest_value(fact: str, changed: set[str]) -> None:
    before = allowed(plain_contracts.CONTRACTS["plain-main"])
    after = allowed(plain_contracts.CONTRACTS["plain-main"].with_changes(**{fact: UNKNOWN_FACT}))
    names = [each.name for each in fields(Allowed)]
    assert {name for name in names if getattr(before, name) != getattr(after, name)} == changed


def test_a_key_that_lives_for_ever_needs_no_bound_on_the_flight() -> None:
    forever = plain_contracts.CONTRACTS["plain-forever"].with_changes(
        flight_max=UNKNOWN_FACT, idle_close=UNKNOWN_FACT
    )
    assert allowed(forever).resend_always
    assert not allowed(forever).absence


# The stricter of two versions of a contract

MAIN = plain_contracts.CONTRACTS["plain-main"]


def _fact(seconds: int | None) -> Fact:
    return UNKNOWN_FACT if seconds is None else Fact(seconds, "measured", "this test")


@pytest.mark.parametrize("name", ["flight_max", "lookup_lag", "idle_close"])
@pytest.mark.parametrize(
    ("one", "other", "held"), [(2, 3, 3), (3, 2, 3), (2, None, None), (None, 2, None)]
)
def test_the_longer_bound_holds_and_an_unknown_one_above_all(
    name: str, one: int | None, other: int | None, held: int | None
) -> None:
    today, recorded = (MAIN.with_changes(**{name: _fact(each)}) for each in (one, other))
    assert getattr(stricter(today, [recorded]), name).seconds == held


@pytest.mark.parametrize(
    ("one", "other", "held"),
    [
        (("window", 600), ("window", 300), ("window", 300)),
        (("window", 300), ("window", 600), ("window", 300)),
        (("window", 600), ("window", None), ("window", None)),
        (("window", None), ("window", 600), ("window", None)),
        (("window", 600), ("forever", None), ("window", 600)),
        (("forever", None), ("window", 600), ("window", 600)),
        (("forever", None), ("forever", None), ("forever", None)),
        (("forever", None), ("weak", None), ("weak", None)),
        (("none", None), ("window", 600), ("none", 600)),
    ],
)
def test_the_weaker_key_and_the_shorter_window_hold(
    one: tuple[str, int | None], other: tuple[str, int | None], held: tuple[str, int | None]
) -> None:
    today, recorded = (
        MAIN.with_changes(keys=keys, key_window=_fact(window)) for keys, window in (one, other)
    )
    both = stricter(today, [recorded])
    assert (both.keys, both.key_window.seconds) == held


@pytest.mark.parametrize(
    ("name", "weak", "strong"),
    [
        ("rejections_stored", False, True),
        ("lookup", "none", "now"),
        ("lookup", "lagged", "now"),
        ("notice", "hint", "proof"),
        ("notice", "none", "hint"),
        ("server_errors_replayed", True, False),
    ],
)
def test_of_every_promise_the_smaller_one_holds(name: str, weak: Any, strong: Any) -> None:
    for one, other in ((weak, strong), (strong, weak)):
        today, recorded = (MAIN.with_changes(**{name: each}) for each in (one, other))
        assert getattr(stricter(today, [recorded]), name) == weak


def test_the_strictest_of_several_holds_and_patience_is_todays() -> None:
    today = MAIN.with_changes(normal_window_seconds=7, lookup_schedule=(9,))
    older = [MAIN.with_changes(flight_max=_fact(9)), MAIN.with_changes(idle_close=_fact(8))]
    held = stricter(today, older)
    assert (held.flight_max.seconds, held.idle_close.seconds) == (9, 8)
    assert (held.normal_window_seconds, held.lookup_schedule) == (7, (9,))
    assert stricter(MAIN, []) == MAIN


def test_of_a_contract_that_nobody_kept_nothing_is_assumed() -> None:
    may = allowed(stricter(MAIN, [unrecorded(MAIN)]))
    assert (may.resend_in_window, may.absence, may.success_by_lookup) == (False, False, True)


@pytest.mark.parametrize("name", sorted(ACCOUNTS))
def test_a_contract_is_read_as_it_was_stored(name: str) -> None:
    contract = ACCOUNTS[name]
    stored = json.loads(json.dumps(contract.facts()))
    assert from_facts(stored) == contract
    assert from_facts(stored).hash() == contract.hash()


def test_a_stored_contract_of_another_release_is_read_with_the_defaults() -> None:
    stored = MAIN.facts()
    stored["fact_of_tomorrow"] = 5
    del stored["server_errors_replayed"]
    assert from_facts(stored) == MAIN


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


def test_reading_the_same_fact_again_is_the_same_contract() -> None:
    first = plain_contracts.CONTRACTS["plain-main"]
    again = replace(
        first,
        terms=Source("documented", "elsewhere", "2027-01-01"),
        flight_max=replace(first.flight_max, on="2027-01-01"),
    )
    assert again.hash() == first.hash()
    assert from_facts(first.facts()).hash() == first.hash()


def test_the_hash_of_a_contract_changes_with_every_fact() -> None:
    first = plain_contracts.CONTRACTS["plain-main"]
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
        "markers_returned": False,
        "server_errors_replayed": True,
        "polices_totals": False,
        "watch_after_success_days": 4,
        "unknown_target_seconds": 901,
        "normal_window_seconds": 6,
        "escalation_grace_seconds": 11,
        "lookup_schedule": (1,),
        "lookups_per_second": 6,
        "lookups_burst": 11,
    }
    assert {*changed, "terms"} == {each.name for each in fields(ProviderContract)}
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


def test_a_contract_of_which_nothing_was_said_has_the_most_careful_values() -> None:
    said = ProviderContract(name="new", keys="none").facts()
    durations = ("key_window", "flight_max", "lookup_lag", "idle_close")
    assert {said.pop(each)["seconds"] for each in durations} == {None}
    assert said == {
        "name": "new",
        "keys": "none",
        "rejections_stored": False,
        "lookup": "none",
        "account_list": "none",
        "markers_returned": True,
        "notice": "none",
        "server_errors_replayed": False,
        "polices_totals": True,
        "watch_after_success_days": 45,
        "unknown_target_seconds": 900,
        "normal_window_seconds": 60,
        "escalation_grace_seconds": 900,
        "lookup_schedule": [3, 10, 30, 60, 120, 300, 900, 3600],
        "lookups_per_second": 5,
        "lookups_burst": 10,
    }


def test_of_what_automation_may_do_nothing_is_allowed_by_itself() -> None:
    nothing = Allowed(
        success_by_lookup=False, success_by_notice=False, resend_in_window=False, absence=False
    )
    left = (nothing.resend_always, nothing.again_after_absence, nothing.needs_stop_proof)
    assert left == (False, False, False)
    assert (nothing.finds_out, nothing.can_settle) == (False, False)
    for each in ("success_by_lookup", "resend_in_window"):
        assert replace(nothing, **{each: True}).finds_out
    assert replace(nothing, success_by_notice=True).can_settle
    assert not replace(nothing, success_by_notice=True).finds_out


def test_a_window_needs_keys_that_have_one_and_an_absence_somebody_to_ask() -> None:
    assert allowed(MAIN).resend_in_window
    assert not allowed(MAIN.with_changes(keys="weak")).resend_in_window
    assert not allowed(MAIN.with_changes(lookup="none")).absence


def test_an_absence_alone_needs_the_stop_proof_where_idle_connections_stay_open() -> None:
    open_ended = MAIN.with_changes(keys="none", idle_close=UNKNOWN_FACT)
    assert allowed(open_ended).needs_stop_proof
    assert not allowed(open_ended.with_changes(lookup_lag=UNKNOWN_FACT)).needs_stop_proof


def test_of_a_contract_that_nobody_kept_no_refusal_is_thought_to_be_stored() -> None:
    assert MAIN.rejections_stored
    assert unrecorded(MAIN).rejections_stored is False


def test_of_two_equal_bounds_the_one_of_today_stays() -> None:
    recorded = MAIN.with_changes(flight_max=replace(MAIN.flight_max, source="read last year"))
    assert stricter(MAIN, [recorded]).flight_max.source == MAIN.flight_max.source
