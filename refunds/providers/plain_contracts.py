"""What the sandbox's accounts promise: every knob of a contract, one account for each that matters.

The sandbox is in this repository and its behaviour is tested, so these facts are measured.
"""

from __future__ import annotations

from typing import Any

from refunds.domain.contract import Fact, ProviderContract, Source

MEASURED_ON = "2026-11-29"


def _seconds(value: int | None) -> Fact:
    if value is None:
        return Fact(None, "unknown", "the sandbox keeps this to itself for this account")
    return Fact(value, "measured", "sandbox profile of this account", MEASURED_ON)


def _contract(name: str, **facts: Any) -> ProviderContract:
    defaults: dict[str, Any] = {
        "keys": "window",
        "key_window": _seconds(600),
        "rejections_stored": True,
        "lookup": "now",
        "account_list": "by_creation",
        "flight_max": _seconds(2),
        "lookup_lag": _seconds(1),
        "idle_close": _seconds(1),
        "notice": "hint",
        "watch_after_success_days": 3,
        "normal_window_seconds": 5,
        "escalation_grace_seconds": 10,
        "lookup_schedule": (1, 2, 4, 8, 15, 30),
        "lookups_per_second": 100,
        "lookups_burst": 200,
        "terms": Source("measured", "sandbox profile of this account", MEASURED_ON),
    }
    return ProviderContract(name=name, **(defaults | facts))


_NONE = _seconds(None)
CONTRACTS = {
    contract.name: contract
    for contract in (
        _contract("plain-main"),
        _contract("plain-forever", keys="forever", key_window=_NONE),
        _contract("plain-weak", keys="weak", key_window=_NONE, rejections_stored=False),
        _contract("plain-nokeys", keys="none", key_window=_NONE, rejections_stored=False),
        _contract(
            "plain-blind",
            keys="none",
            key_window=_NONE,
            rejections_stored=False,
            lookup="none",
            account_list="none",
            lookup_lag=_NONE,
            notice="none",
        ),
        _contract(
            "plain-hooks",
            keys="none",
            key_window=_NONE,
            rejections_stored=False,
            lookup="none",
            account_list="none",
            lookup_lag=_NONE,
            notice="proof",
        ),
        _contract("plain-lagged", lookup="lagged", lookup_lag=_seconds(3)),
        _contract("plain-unbounded", flight_max=_NONE, idle_close=_NONE),
        _contract("plain-async", keys="forever", key_window=_NONE),
        _contract(
            "plain-stored500",
            keys="forever",
            key_window=_NONE,
            lookup="none",
            account_list="none",
            lookup_lag=_NONE,
            notice="none",
            server_errors_replayed=True,
        ),
    )
}
# A dialect that takes our marker and gives it back nowhere: no account of the sandbox by itself.
UNMARKED = _contract(
    "plain-unmarked",
    keys="none",
    key_window=_NONE,
    rejections_stored=False,
    account_list="none",
    markers_returned=False,
)
