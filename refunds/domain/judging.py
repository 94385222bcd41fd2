"""Judging one proposal by the policy: every check, and who must say yes. Pure.

Every check runs and is recorded with its inputs, also after one has failed (R9).
Amounts are minor units of the payment's currency.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from refunds.domain.money import display
from refunds.domain.policy import Policy

# What a proposer may put right in the wish itself; every other refusal is for a person.
CORRECTABLE_CHECKS = frozenset({"currency_matches", "within_balance"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFacts:
    """Everything the checks look at, read under the order's lock by the caller."""

    amount_minor: int
    currency: str
    order_ref: str
    order_version: int
    order_frozen: bool
    payment_ref: str
    payment_state: str
    payment_currency: str
    captured_minor: int
    refunded_minor: int
    held_minor: int
    captured_at: datetime | None
    facts_as_of: datetime | None
    caller_name: str
    caller_is_agent: bool
    caller_may_propose: bool
    ended_equivalent: str | None
    separate_from: str | None
    uncertain_on_order: int
    equal_for_customer_count: int
    agent_day_minor: int
    agent_order_count: int
    payment_sum_minor: int
    customer_sum_minor: int
    proposer_sum_minor: int
    machine_can_settle: bool


@dataclass(frozen=True, slots=True)
class Check:
    """One recorded check: a sentence for people and the inputs for machines."""

    name: str
    passed: bool
    says: str
    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All checks, and what follows: denied, cleared by policy, or held for `quorum` people."""

    checks: tuple[Check, ...]
    tier: int
    quorum: int
    possible_repeat: bool

    @property
    def denied(self) -> bool:
        return any(not check.passed for check in self.checks)

    @property
    def cleared(self) -> bool:
        return not self.denied and self.tier == 0

    def failed_names(self) -> list[str]:
        return [check.name for check in self.checks if not check.passed]


def judge(facts: ProposalFacts, policy: Policy, now: datetime) -> Judgement:
    """Run every check on one proposal; decides nothing from texts, claims or summaries."""
    possible_repeat = bool(
        facts.ended_equivalent
        or facts.separate_from
        or facts.uncertain_on_order
        or facts.equal_for_customer_count
    )
    tier = _tier(facts, policy, possible_repeat)
    checks = (
        _caller_allowed(facts),
        _order_known(facts, policy, now),
        _payment_refundable(facts),
        _currency_matches(facts),
        _within_balance(facts),
        Check("no_live_equivalent", True, "no equal refund of this payment is open", {}),
        _repeat_confirmed(facts, possible_repeat),
        _refund_age(facts, policy, now),
        _agent_limits(facts, policy),
        _velocity(facts, policy),
        _tier_check(facts, policy, tier),
    )
    return Judgement(
        checks=checks,
        tier=tier,
        quorum=min(tier, 2),
        possible_repeat=possible_repeat,
    )


def _tier(facts: ProposalFacts, policy: Policy, possible_repeat: bool) -> int:
    largest = max(
        facts.amount_minor,
        facts.payment_sum_minor,
        facts.customer_sum_minor,
        facts.proposer_sum_minor,
    )
    tier = policy.tier_of(largest, facts.currency)
    limits = policy.currencies.get(facts.currency)
    # A lost answer that only a person can settle is worth one more pair of eyes beforehand.
    if (
        limits
        and not facts.machine_can_settle
        and facts.amount_minor > limits.no_lookup_limit_minor
    ):
        tier = min(3, tier + 1)
    return max(tier, 1) if possible_repeat else tier


def _caller_allowed(facts: ProposalFacts) -> Check:
    kind = "agent" if facts.caller_is_agent else "person"
    verb = "may" if facts.caller_may_propose else "may not"
    return Check(
        "caller_allowed",
        facts.caller_may_propose,
        f"{kind} {facts.caller_name} {verb} propose here",
        {"caller": facts.caller_name, "kind": kind},
    )


def _order_known(facts: ProposalFacts, policy: Policy, now: datetime) -> Check:
    age = "age of the facts not stated"
    if facts.facts_as_of is not None:
        passed = now - facts.facts_as_of
        old = passed > timedelta(seconds=policy.facts_fresh_seconds)
        age = f"facts {_length(int(passed.total_seconds()))} old"
        if old:
            age += (
                f", older than the {_length(policy.facts_fresh_seconds)} wanted: look in the shop"
            )
    if facts.order_frozen:
        age = "frozen by a person: no refund on it"
    return Check(
        "order_known",
        not facts.order_frozen,
        f"{facts.order_ref}, version {facts.order_version}, {age}",
        {"order": facts.order_ref, "version": facts.order_version, "frozen": facts.order_frozen},
    )


def _length(seconds: int) -> str:
    """ "12 min", "26 h", "7 days": in whole units, the largest of which there are two or more."""
    if seconds < 2 * 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 2 * 86400 else f"{seconds // 86400} days"


_NOT_REFUNDABLE = {
    "uncaptured": "not captured yet: an uncaptured payment is voided, not refunded",
    "disputed": "disputed: the dispute decides about this money",
    "reversed": "its capture was reversed: there is nothing to refund",
}


def _payment_refundable(facts: ProposalFacts) -> Check:
    return Check(
        "payment_refundable",
        facts.payment_state == "captured",
        _NOT_REFUNDABLE.get(facts.payment_state, "captured, no dispute"),
        {"payment": facts.payment_ref, "state": facts.payment_state},
    )


def _currency_matches(facts: ProposalFacts) -> Check:
    equal = facts.currency == facts.payment_currency
    return Check(
        "currency_matches",
        equal,
        f"asked in {facts.currency}, paid in {facts.payment_currency}",
        {"asked": facts.currency, "paid": facts.payment_currency},
    )


def _within_balance(facts: ProposalFacts) -> Check:
    available = facts.captured_minor - facts.refunded_minor - facts.held_minor
    shown = display(available, facts.payment_currency)
    return Check(
        "within_balance",
        facts.amount_minor <= available,
        f"{shown} of {display(facts.captured_minor, facts.payment_currency)} still refundable",
        {
            "captured_minor": facts.captured_minor,
            "refunded_minor": facts.refunded_minor,
            "held_minor": facts.held_minor,
            "asked_minor": facts.amount_minor,
        },
    )


def _repeat_confirmed(facts: ProposalFacts, possible_repeat: bool) -> Check:
    notes = []
    if facts.ended_equivalent:
        notes.append(f"an equal refund exists ({facts.ended_equivalent})")
    elif facts.separate_from:
        notes.append(f"it is said to be separate from another refund ({facts.separate_from})")
    if facts.uncertain_on_order:
        notes.append("another refund of this order has an unknown outcome")
    if facts.equal_for_customer_count:
        notes.append("this customer had an equal refund in the last 24 h")
    says = "; ".join(notes) + ": a person must confirm that this one is separate" if notes else ""
    return Check(
        "repeat_confirmed",
        True,
        says or "nothing looks like a repeat",
        {"possible_repeat": possible_repeat, "separate_from": facts.separate_from},
    )


def _refund_age(facts: ProposalFacts, policy: Policy, now: datetime) -> Check:
    if facts.captured_at is None:
        return Check("refund_age", True, "capture date not stated", {"captured_at": None})
    # A minute of grace: the merchant's clock may be a little ahead of ours.
    days = (now + timedelta(minutes=1) - facts.captured_at).days
    return Check(
        "refund_age",
        0 <= days <= policy.refund_age_days_max,
        "captured in the future, by what was fed"
        if days < 0
        else f"captured {days} days ago; {policy.refund_age_days_max} days are allowed",
        {"days": days, "days_max": policy.refund_age_days_max},
    )


def _agent_limits(facts: ProposalFacts, policy: Policy) -> Check:
    inputs = {
        "per_refund_minor": policy.agent_per_refund_minor,
        "day_minor": facts.agent_day_minor,
        "per_day_minor": policy.agent_per_day_minor,
        "order_count": facts.agent_order_count,
        "per_order_count": policy.agent_per_order_count,
    }
    if not facts.caller_is_agent:
        return Check("agent_limits", True, "proposed by a person", inputs)
    problems = []
    if facts.amount_minor > policy.agent_per_refund_minor:
        shown = display(policy.agent_per_refund_minor, facts.currency)
        problems.append(f"above {shown} for one refund")
    if facts.agent_day_minor + facts.amount_minor > policy.agent_per_day_minor:
        shown = display(policy.agent_per_day_minor, facts.currency)
        problems.append(f"above {shown} for one day")
    if facts.agent_order_count >= policy.agent_per_order_count:
        problems.append(f"{facts.agent_order_count} refunds on this order in 24 h already")
    says = "; ".join(problems) or "within the agent's limits"
    return Check("agent_limits", not problems, says, inputs)


def _velocity(facts: ProposalFacts, policy: Policy) -> Check:
    limits = policy.currencies.get(facts.currency)
    cap = limits.refund_max_minor if limits else None
    inputs = {
        "payment_minor": facts.payment_sum_minor,
        "customer_minor": facts.customer_sum_minor,
        "proposer_minor": facts.proposer_sum_minor,
        "cap_minor": cap,
    }
    within = cap is None or facts.customer_sum_minor <= cap
    return Check(
        "velocity",
        within,
        f"customer {display(facts.customer_sum_minor, facts.currency)}, "
        f"proposer {display(facts.proposer_sum_minor, facts.currency)}"
        f" in {_length(policy.sum_window_seconds)}, this one included",
        inputs,
    )


_TIER_WORDS = {0: "policy alone", 1: "one lead", 2: "two leads", 3: "a lead and finance"}


def tier_words(tier: int) -> str:
    """Who must say yes, for pages: "one lead"."""
    return _TIER_WORDS[tier]


def _tier_check(facts: ProposalFacts, policy: Policy, tier: int) -> Check:
    limits = policy.currencies.get(facts.currency)
    within = limits is None or facts.amount_minor <= limits.refund_max_minor
    because = _tier_because(facts, policy, tier)
    says = f"tier {tier}: {tier_words(tier)}" + (f", because {because}" if because else "")
    if not within and limits:
        says = f"above the largest refund, {display(limits.refund_max_minor, facts.currency)}"
    return Check("tier", within, says, {"tier": tier, "because": because})


def _tier_because(facts: ProposalFacts, policy: Policy, tier: int) -> str:
    """Why it needs more people than its own amount does; empty where it does not."""
    if tier <= policy.tier_of(facts.amount_minor, facts.currency):
        return ""
    sums = (
        ("of this payment", facts.payment_sum_minor),
        ("of this customer", facts.customer_sum_minor),
        ("of this proposer", facts.proposer_sum_minor),
    )
    whose, largest = max(sums, key=lambda each: each[1])
    if policy.tier_of(largest, facts.currency) > policy.tier_of(facts.amount_minor, facts.currency):
        window = _length(policy.sum_window_seconds)
        return f"the refunds {whose} within {window} add up to {display(largest, facts.currency)}"
    if not facts.machine_can_settle and tier > 1:
        return "a lost answer of this account can be settled by a person only"
    return "it may repeat an earlier refund"
