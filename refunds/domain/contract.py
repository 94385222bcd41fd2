"""What a provider promises, as frozen data; what automation may do is computed from it.

A fact is *documented* (with its source), *measured*, or *unknown*; an unknown fact has its
safest value: an unknown flight bound or lookup lag means that absence is never concluded.
Durations are seconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from refunds.domain.fingerprint import digest

Basis = Literal["documented", "measured", "unknown"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One duration in seconds with how we know it; None is *unknown*."""

    seconds: int | None
    basis: Basis
    source: str


UNKNOWN_FACT = Fact(None, "unknown", "not stated by the provider")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContract:
    """The facts about one kind of account that the engine uses (reliability 2.4, providers 6)."""

    name: str
    keys: Literal["none", "weak", "window", "forever"]
    key_window: Fact = UNKNOWN_FACT
    rejections_stored: bool = False
    lookup: Literal["none", "now", "lagged"] = "none"
    account_list: Literal["none", "by_creation"] = "none"
    flight_max: Fact = UNKNOWN_FACT
    lookup_lag: Fact = UNKNOWN_FACT
    idle_close: Fact = UNKNOWN_FACT
    notice: Literal["none", "hint", "proof"] = "none"
    server_errors_replayed: bool = False
    polices_totals: bool = True
    watch_after_success_days: int = 45
    unknown_target_seconds: int = 900
    normal_window_seconds: int = 60
    escalation_grace_seconds: int = 900
    lookup_schedule: tuple[int, ...] = (3, 10, 30, 60, 120, 300, 900, 3600)

    def hash(self) -> bytes:
        """SHA-256 of every fact; stored with each attempt made under it."""
        return digest(_plain(asdict(self)))

    def with_changes(self, **changes: Any) -> ProviderContract:
        """A copy with other values; for accounts that shorten a contract's durations."""
        return replace(self, **changes)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What automation may do with an account (table 2.4 of the reliability notes)."""

    success_by_lookup: bool
    success_by_notice: bool
    resend_in_window: bool
    absence: bool

    @property
    def can_settle(self) -> bool:
        """Whether anything but a person can ever settle a lost answer."""
        return self.success_by_lookup or self.success_by_notice or self.resend_in_window


def allowed(contract: ProviderContract) -> Allowed:
    """Compute from the facts what the engine may conclude and do by itself."""
    bounded = contract.flight_max.seconds is not None
    stopped = contract.idle_close.seconds is not None
    living_key = contract.keys == "forever" or (
        contract.keys == "window" and contract.key_window.seconds is not None
    )
    looks = contract.lookup != "none"
    return Allowed(
        success_by_lookup=looks,
        success_by_notice=contract.notice != "none",
        resend_in_window=living_key and (contract.keys == "forever" or (bounded and stopped)),
        absence=looks and bounded and stopped and contract.lookup_lag.seconds is not None,
    )


def quiet_until(
    contract: ProviderContract,
    last_writes: list[tuple[datetime, bool]],
    skew_seconds: int,
) -> datetime | None:
    """When the last possible landing has passed and is visible, or None if that is never known.

    `last_writes`: per attempt the instant of its last possible write and whether that is a stop
    proof (then the idle time I need not be added). Rules 15 and 17.
    """
    flight, lag = contract.flight_max.seconds, contract.lookup_lag.seconds
    if flight is None or lag is None or not last_writes:
        return None
    ends = []
    for at, stopped in last_writes:
        idle = 0 if stopped else contract.idle_close.seconds
        if idle is None:
            return None
        ends.append(at + timedelta(seconds=idle))
    return max(ends) + timedelta(seconds=flight + lag + 2 * skew_seconds)
