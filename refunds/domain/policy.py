"""The policy: limits and durations as the file gives them. Pure.

Amounts are minor units of their currency, durations seconds unless a name says otherwise.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refunds.domain import elsewhere
from refunds.domain.elsewhere import Elsewhere


class PolicyUnreadable(Exception):
    """policy.toml is missing a value or has a wrong one; the message names it."""


@dataclass(frozen=True, slots=True)
class CurrencyLimits:
    tier1_max_minor: int
    tier2_max_minor: int
    refund_max_minor: int
    no_lookup_limit_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The parsed policy file; `version` is the SHA-256 of its bytes in hex."""

    version: str
    tier0_max_minor: int
    sum_window_seconds: int
    approval_valid_seconds: int
    proposal_valid_seconds: int
    repeat_window_seconds: int
    refund_age_days_max: int
    facts_fresh_seconds: int
    approvals_per_person_hour_max: int
    requester_may_approve_up_to: int
    agent_per_refund_minor: int
    agent_per_day_minor: int
    agent_per_order_count: int
    currencies: Mapping[str, CurrencyLimits]
    external_refunds: Elsewhere = Elsewhere()

    def tier_of(self, amount_minor: int, currency: str) -> int:
        """0 policy alone, 1 one lead, 2 two leads, 3 lead and finance."""
        limits = self.currencies.get(currency)
        if limits is None:
            return 3
        if amount_minor <= self.tier0_max_minor:
            return 0
        if amount_minor <= limits.tier1_max_minor:
            return 1
        return 2 if amount_minor <= limits.tier2_max_minor else 3


def _whole(table: Mapping[str, Any], name: str) -> int:
    value = table.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise PolicyUnreadable(f"{name} must be a whole number, 0 or more; it is {value!r}")
    return value


def _external_refunds(value: object) -> Elsewhere:
    try:
        return elsewhere.parse(value)
    except ValueError as error:
        raise PolicyUnreadable(f"external_refunds: {error}") from error


def parse(raw: bytes) -> Policy:
    """Read policy.toml; raises PolicyUnreadable naming the value that is wrong."""
    try:
        table = tomllib.loads(raw.decode())
        currencies = {
            code: CurrencyLimits(*(_whole(row, name) for name in CurrencyLimits.__slots__))
            for code, row in table.get("tiers", {}).items()
        }
        agent = table.get("agent", {})
        if table.get("other_currencies") != "tier 3, no cap":
            raise PolicyUnreadable('other_currencies must be "tier 3, no cap"')
        return Policy(
            version=hashlib.sha256(raw).hexdigest(),
            agent_per_refund_minor=_whole(agent, "per_refund_minor"),
            agent_per_day_minor=_whole(agent, "per_day_minor"),
            agent_per_order_count=_whole(agent, "per_order_count_24h"),
            currencies=currencies,
            external_refunds=_external_refunds(table.get("external_refunds", "case")),
            **{name: _whole(table, name) for name in _TOP},
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyUnreadable(f"the policy file is not TOML: {error}") from error


_TOP = (
    "tier0_max_minor",
    "sum_window_seconds",
    "approval_valid_seconds",
    "proposal_valid_seconds",
    "repeat_window_seconds",
    "refund_age_days_max",
    "facts_fresh_seconds",
    "approvals_per_person_hour_max",
    "requester_may_approve_up_to",
)
