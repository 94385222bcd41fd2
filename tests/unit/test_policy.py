"""Policy: every check both ways, the tier of the largest sum, and what a repeat changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from refunds.domain.judging import Judgement, ProposalFacts, judge, tier_words
from refunds.domain.policy import Policy, PolicyUnreadable, parse

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
RAW = (Path(__file__).resolve().parent.parent.parent / "policy.toml").read_bytes()
POLICY = parse(RAW)
CHECKS = [
    "caller_allowed",
    "order_known",
    "payment_refundable",
    "currency_matches",
    "within_balance",
    "no_live_equivalent",
    "repeat_confirmed",
    "refund_age",
    "agent_limits",
    "velocity",
    "tier",
]
FACTS = ProposalFacts(
    amount_minor=7900,
    currency="USD",
    order_ref="4821",
    order_version=3,
    order_frozen=False,
    payment_ref="pi_4821",
    payment_state="captured",
    payment_currency="USD",
    captured_minor=12900,
    refunded_minor=0,
    held_minor=0,
    captured_at=NOON - timedelta(days=9),
    facts_as_of=NOON - timedelta(minutes=2),
    caller_name="Echo",
    caller_is_agent=True,
    caller_may_propose=True,
    ended_equivalent=None,
    separate_from=None,
    uncertain_on_order=0,
    equal_for_customer_count=0,
    agent_day_minor=0,
    agent_order_count=0,
    payment_sum_minor=7900,
    customer_sum_minor=7900,
    proposer_sum_minor=7900,
    machine_can_settle=True,
)


def judged(policy: Policy = POLICY, **facts: Any) -> Judgement:
    return judge(replace(FACTS, **facts), policy, NOON)


def test_every_check_runs_and_is_recorded_in_order() -> None:
    judgement = judged()
    assert [check.name for check in judgement.checks] == CHECKS
    assert judgement.failed_names() == []
    assert not judgement.denied
    assert all(check.says for check in judgement.checks)


def test_all_checks_run_after_one_has_failed() -> None:
    judgement = judged(caller_may_propose=False, order_frozen=True, amount_minor=99_999_999)
    assert [check.name for check in judgement.checks] == CHECKS
    assert judgement.failed_names() == [
        *("caller_allowed", "order_known", "within_balance", "agent_limits", "tier")
    ]
    assert judgement.denied


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        ("caller_allowed", {"caller_may_propose": False}),
        ("order_known", {"order_frozen": True}),
        ("payment_refundable", {"payment_state": "uncaptured"}),
        ("payment_refundable", {"payment_state": "disputed"}),
        ("payment_refundable", {"payment_state": "reversed"}),
        ("currency_matches", {"currency": "EUR"}),
        ("within_balance", {"captured_minor": 7899}),
        ("within_balance", {"refunded_minor": 5001}),
        ("within_balance", {"held_minor": 5001}),
        ("within_balance", {"refunded_minor": 2501, "held_minor": 2500}),
        ("refund_age", {"captured_at": NOON - timedelta(days=181)}),
        ("agent_limits", {"amount_minor": 20_001, "captured_minor": 20_001}),
        ("agent_limits", {"agent_day_minor": 192_101}),
        ("agent_limits", {"agent_order_count": 5}),
        ("velocity", {"customer_sum_minor": 1_000_001}),
        (
            "tier",
            {"amount_minor": 1_000_001, "captured_minor": 1_000_001, "caller_is_agent": False},
        ),
    ],
)
def test_a_check_that_fails_denies_and_is_the_only_one(check: str, facts: dict[str, Any]) -> None:
    judgement = judged(**facts)
    assert judgement.failed_names() == [check]
    assert judgement.denied
    assert not judgement.cleared


@pytest.mark.parametrize(
    "facts",
    [
        {"captured_minor": 7900},
        {"refunded_minor": 5000},
        {"held_minor": 5000},
        {"captured_at": NOON - timedelta(days=180)},
        {"captured_at": None},
        {"facts_as_of": None},
        {"amount_minor": 20_000, "captured_minor": 20_000},
        {"agent_day_minor": 192_100},
        {"agent_order_count": 4},
        {"customer_sum_minor": 1_000_000},
        {"amount_minor": 1_000_000, "captured_minor": 1_000_000, "caller_is_agent": False},
        # What limits an agent does not limit a person.
        {"agent_order_count": 99, "agent_day_minor": 10**9, "caller_is_agent": False},
    ],
)
def test_the_exact_limit_passes(facts: dict[str, Any]) -> None:
    assert judged(**facts).failed_names() == []


@pytest.mark.parametrize(
    ("amount_minor", "currency", "tier", "quorum"),
    [
        (10_000, "USD", 1, 1),
        (10_001, "USD", 2, 2),
        (100_000, "USD", 2, 2),
        (100_001, "USD", 3, 2),
        (15_000, "JPY", 1, 1),
        (15_001, "JPY", 2, 2),
        (30_000, "KWD", 1, 1),
        (300_001, "KWD", 3, 2),
        (1, "HUF", 3, 2),
    ],
)
def test_the_tier_of_an_amount(amount_minor: int, currency: str, tier: int, quorum: int) -> None:
    judgement = judged(
        amount_minor=amount_minor,
        currency=currency,
        payment_currency=currency,
        captured_minor=10**7,
        caller_is_agent=False,
    )
    assert (judgement.tier, judgement.quorum) == (tier, quorum)
    assert judgement.checks[-1].says == f"tier {tier}: {tier_words(tier)}"


@pytest.mark.parametrize("total", ["payment_sum_minor", "customer_sum_minor", "proposer_sum_minor"])
def test_splits_are_summed_for_the_tier(total: str) -> None:
    """Three times 40 against a limit of 100 goes to the higher tier (T4)."""
    for sum_minor, tier in ((10_000, 1), (12_000, 2), (100_001, 3)):
        facts: dict[str, Any] = {"amount_minor": 4000, total: sum_minor}
        assert judged(**facts).tier == tier


CLEARING = replace(POLICY, tier0_max_minor=8000)
REPEATS: list[dict[str, Any]] = [
    {"ended_equivalent": "0190a5c2"},
    {"separate_from": "0190a5c2"},
    {"uncertain_on_order": 1},
    {"equal_for_customer_count": 1},
]


def test_policy_alone_clears_only_where_it_is_switched_on() -> None:
    assert not judged().cleared
    cleared = judged(CLEARING)
    assert (cleared.cleared, cleared.tier, cleared.possible_repeat) == (True, 0, False)


@pytest.mark.parametrize("facts", REPEATS, ids=lambda facts: next(iter(facts)))
def test_a_possible_repeat_always_needs_a_person(facts: dict[str, Any]) -> None:
    judgement = judged(CLEARING, **facts)
    assert judgement.possible_repeat
    assert (judgement.tier, judgement.cleared, judgement.denied) == (1, False, False)
    [check] = [each for each in judgement.checks if each.name == "repeat_confirmed"]
    assert check.inputs["possible_repeat"] is True
    assert "a person must confirm" in check.says


def test_where_only_a_person_could_find_out_one_tier_more() -> None:
    blind: dict[str, Any] = {"machine_can_settle": False}
    assert judged(amount_minor=5000, **blind).tier == 1
    assert judged(amount_minor=5001, **blind).tier == 2
    assert judged(amount_minor=5001).tier == 1
    top: dict[str, Any] = {
        "amount_minor": 200_000,
        "captured_minor": 200_000,
        "caller_is_agent": False,
    }
    assert judged(**top, **blind).tier == 3


def test_no_text_of_the_caller_reaches_the_judge() -> None:
    names = set(ProposalFacts.__slots__)
    assert not names & {"reason_text", "claims", "run_ref", "step_ref", "ticket_ref", "read_links"}


def test_the_version_of_a_policy_is_the_hash_of_its_bytes() -> None:
    assert parse(RAW).version == POLICY.version
    assert parse(RAW + b"\n").version != POLICY.version


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"tier0_max_minor = 0 ", b"tier0_max_minor = -1 ", "tier0_max_minor"),
        (b"tier0_max_minor = 0 ", b"tier0_max_minor = 1.5 ", "tier0_max_minor"),
        (b"tier0_max_minor = 0 ", b"tier0_max_minor = true ", "tier0_max_minor"),
        (b"sum_window_seconds = ", b"sum_window = ", "sum_window_seconds"),
        (b"per_day_minor = ", b"daily = ", "per_day_minor"),
        (b"[tiers.JPY]\ntier1_max_minor", b"[tiers.JPY]\ntier1", "tier1_max_minor"),
        (b'"tier 3, no cap"', b'"tier 1"', "other_currencies"),
        (b"[agent]", b"[agent", "not TOML"),
        (b"version = 1", b"version = 1 # \xff", "not TOML"),
    ],
)
def test_a_wrong_policy_file_names_what_is_wrong(old: bytes, new: bytes, says: str) -> None:
    assert RAW.count(old) == 1
    with pytest.raises(PolicyUnreadable, match=says):
        parse(RAW.replace(old, new))


def _says(judgement: Judgement, name: str) -> str:
    return next(check.says for check in judgement.checks if check.name == name)


def test_a_small_refund_that_needs_two_says_which_sum_raised_it() -> None:
    raised = judged(amount_minor=500, proposer_sum_minor=60_000)
    assert _says(raised, "tier") == (
        "tier 2: two leads, because the refunds of this proposer within 24 h add up to 600.00 USD"
    )
    assert _says(judged(amount_minor=60_000), "tier") == "tier 2: two leads"
    assert "only" in _says(judged(machine_can_settle=False, amount_minor=20_000), "tier")
    repeat = judged(replace(POLICY, tier0_max_minor=8000), amount_minor=500, uncertain_on_order=1)
    assert "repeat" in _says(repeat, "tier")


def test_sums_name_the_window_of_the_policy_in_force() -> None:
    an_hour = replace(POLICY, sum_window_seconds=3600)
    assert "in 60 min, this one included" in _says(judged(an_hour), "velocity")
    assert "in 24 h, this one included" in _says(judged(), "velocity")


def test_old_facts_are_told_in_readable_units_with_what_was_wanted() -> None:
    old = _says(judged(facts_as_of=NOON - timedelta(days=7, hours=3)), "order_known")
    assert "facts 7 days old, older than the 15 min wanted" in old
