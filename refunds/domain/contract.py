"""What a provider promises, as frozen data; what automation may do is computed from it.

A fact is *documented* (with its source), *measured*, *accepted* by two people, or *unknown*; an
unknown fact has its safest value: an unknown flight bound or lookup lag means that absence is never
concluded. Accepted can be a flight bound or a lookup lag, for one kind of act, and nothing else:
never the kind of key, its window or the marker (rules 42 and 43). Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from refunds.domain.fingerprint import digest

Basis = Literal["documented", "measured", "accepted", "unknown"]
Scope = Literal["resend", "absence"]
Acceptable = Literal["flight_max", "lookup_lag"]

# From the weakest to the strongest, for `stricter`.
_KEYS: Final = ("none", "weak", "window", "forever")
_LOOKUPS: Final = ("none", "lagged", "now")
_NOTICES: Final = ("none", "hint", "proof")


@dataclass(frozen=True, slots=True)
class Fact:
    """One duration in seconds with how we know it; None is *unknown*.

    `on` is the day (ISO 8601) on which the source was read or the figure measured.
    """

    seconds: int | None
    basis: Basis
    source: str
    on: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """How we know what is no duration: kinds of keys, lookups and notices; `on` as in `Fact`."""

    basis: Basis
    source: str
    on: str = ""


UNKNOWN_FACT = Fact(None, "unknown", "not stated by the provider")
UNKNOWN_SOURCE = Source("unknown", "not stated by the provider")
# When and where a fact was read is no part of it: reading the same again changes no hash.
_BESIDE = frozenset({"on", "terms"})


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
    markers_returned: bool = True
    notice: Literal["none", "hint", "proof"] = "none"
    server_errors_replayed: bool = False
    polices_totals: bool = True
    watch_after_success_days: int = 45
    unknown_target_seconds: int = 900
    normal_window_seconds: int = 60
    escalation_grace_seconds: int = 900
    lookup_schedule: tuple[int, ...] = (3, 10, 30, 60, 120, 300, 900, 3600)
    lookups_per_second: int = 5
    lookups_burst: int = 10
    terms: Source = field(default=UNKNOWN_SOURCE, compare=False)

    def hash(self) -> bytes:
        """SHA-256 of every fact; stored with each attempt made under it."""
        return digest(self.facts())

    def facts(self) -> dict[str, Any]:
        """The JSON form that `from_facts` reads again."""
        written: dict[str, Any] = _plain(asdict(self))
        return written

    def with_changes(self, **changes: Any) -> ProviderContract:
        """A copy with other values; for accounts that shorten a contract's durations."""
        return replace(self, **changes)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _BESIDE}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def from_facts(stored: dict[str, Any]) -> ProviderContract:
    """A contract as it was stored; what an older release did not know has its default."""
    values: dict[str, Any] = {}
    for each in fields(ProviderContract):
        value = stored.get(each.name, each.default)
        if isinstance(value, dict):
            value = Fact(value["seconds"], value["basis"], value["source"])
        values[each.name] = tuple(value) if isinstance(value, list) else value
    return ProviderContract(**values)


def stricter(today: ProviderContract, recorded: Iterable[ProviderContract]) -> ProviderContract:
    """What may be relied on for attempts made under other versions of the contract.

    For each fact the more careful of all values; what a lookup shows, schedules and windows of
    patience are today's.
    """
    held = today
    for other in recorded:
        held = replace(
            held,
            keys=min(held.keys, other.keys, key=_KEYS.index),
            key_window=_window(held, other),
            rejections_stored=held.rejections_stored and other.rejections_stored,
            lookup=min(held.lookup, other.lookup, key=_LOOKUPS.index),
            notice=min(held.notice, other.notice, key=_NOTICES.index),
            flight_max=_longer(held.flight_max, other.flight_max),
            lookup_lag=_longer(held.lookup_lag, other.lookup_lag),
            idle_close=_longer(held.idle_close, other.idle_close),
            server_errors_replayed=held.server_errors_replayed or other.server_errors_replayed,
        )
    return held


def unrecorded(today: ProviderContract) -> ProviderContract:
    """What is assumed of a recorded contract that nobody kept: nothing about keys and times."""
    return replace(
        today,
        keys="none",
        rejections_stored=False,
        key_window=UNKNOWN_FACT,
        flight_max=UNKNOWN_FACT,
        lookup_lag=UNKNOWN_FACT,
        idle_close=UNKNOWN_FACT,
    )


def _longer(one: Fact, other: Fact) -> Fact:
    """The more careful of two bounds; unknown is the most careful."""
    if one.seconds is None or other.seconds is None:
        return one if one.seconds is None else other
    return one if one.seconds >= other.seconds else other


def _window(one: ProviderContract, other: ProviderContract) -> Fact:
    """The more careful of two key windows; unknown is the most careful, for ever has none."""
    windows = [each.key_window for each in (one, other) if each.keys == "window"]
    if not windows:
        return one.key_window
    return min(windows, key=lambda each: -1 if each.seconds is None else each.seconds)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A figure that two people accepted for one fact of one account, for one kind of act.

    `id` names the record. It stands in where the contract says nothing, and never elsewhere.
    """

    id: int
    fact: Acceptable
    seconds: int
    scope: Scope


def as_accepted(
    contract: ProviderContract, accepted: Iterable[Accepted], scope: Scope
) -> tuple[ProviderContract, tuple[int, ...]]:
    """The contract with what was accepted for this act, and the ids of the records it rests on."""
    used = [
        each
        for each in accepted
        if each.scope == scope and getattr(contract, each.fact).seconds is None
    ]
    if not used:
        return contract, ()
    changes: dict[str, Any] = {
        each.fact: Fact(each.seconds, "accepted", f"accepted fact {each.id}") for each in used
    }
    return replace(contract, **changes), tuple(each.id for each in used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What automation may do with an account (table 2.4 of the reliability notes).

    `absence` may end an operation; `again_after_absence`: it may then also be sent once more.
    `needs_stop_proof`: both absence and resends wait until each sender is known to have stopped.
    """

    success_by_lookup: bool
    success_by_notice: bool
    resend_in_window: bool
    absence: bool
    resend_always: bool = False
    again_after_absence: bool = False
    needs_stop_proof: bool = False

    @property
    def finds_out(self) -> bool:
        """Whether we can find out by ourselves: by asking, or by the key of a second send."""
        return self.success_by_lookup or self.resend_in_window

    @property
    def can_settle(self) -> bool:
        """Whether anything but a person can ever settle a lost answer."""
        return self.success_by_lookup or self.success_by_notice or self.resend_in_window


def allowed(contract: ProviderContract, *, accepted: Iterable[Accepted] = ()) -> Allowed:
    """Compute from the facts, and from what was accepted, what the engine may do by itself."""
    accepted = tuple(accepted)
    for_resend, _ = as_accepted(contract, accepted, "resend")
    for_absence, taken = as_accepted(contract, accepted, "absence")
    looks = contract.lookup != "none"
    always = contract.keys == "forever"
    in_window = (
        contract.keys == "window"
        and contract.key_window.seconds is not None
        and for_resend.flight_max.seconds is not None
        and (contract.idle_close.seconds is not None or for_resend.flight_max.basis == "accepted")
    )
    absence = (
        looks
        and for_absence.flight_max.seconds is not None
        and for_absence.lookup_lag.seconds is not None
    )
    return Allowed(
        success_by_lookup=looks,
        success_by_notice=contract.notice != "none",
        resend_in_window=always or in_window,
        absence=absence,
        resend_always=always,
        again_after_absence=absence and not taken,
        needs_stop_proof=contract.idle_close.seconds is None and (absence or in_window),
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
