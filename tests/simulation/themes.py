"""What every fifth seed is about: a contract that no account of the sandbox has, and its weather.

The other seeds stay the schedules that they were without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from unittest import mock

from refunds.domain.contract import Fact
from refunds.providers import plain_contracts, registry
from tests.simulation.weather import Weather

_EVERY: Final = 5


def _stated(seconds: int) -> Fact:
    return Fact(seconds, "measured", "the theme")


@dataclass(frozen=True, kw_only=True)
class Theme:
    """`contract` is what the account promises otherwise, `profile` what its provider does then.

    `sends`, `reads` and `crowd` are instead of the weather's, `acts` are weights beside its own.
    `sleeps_late`: a sender sleeps after its last look at the clock, not before it; `naps`: how often
    others have their turn meanwhile. `second_copy`: what its sender hears of a request that a hop
    sent twice.
    """

    account: str
    contract: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, object] = field(default_factory=dict)
    sends: dict[str, float]
    reads: dict[str, float] = field(default_factory=dict)
    acts: dict[str, float] = field(default_factory=dict)
    crowd: float | None = None
    sleeps_late: bool = False
    naps: int = 1
    second_copy: str = "already_refunded"

    def over(self, weather: Weather) -> Weather:
        """This weather, with more of what the theme is about."""
        return replace(
            weather,
            sends=self.sends or weather.sends,
            reads=self.reads or weather.reads,
            acts={**weather.acts, **self.acts},
            crowd=weather.crowd if self.crowd is None else self.crowd,
        )

    @contextmanager
    def promised(self) -> Iterator[None]:
        """The product knows the account under this contract."""
        usual = plain_contracts.CONTRACTS[self.account]
        with mock.patch.dict(
            plain_contracts.CONTRACTS, {self.account: usual.with_changes(**self.contract)}
        ):
            registry.accounts.cache_clear()
            yield
        registry.accounts.cache_clear()


# Requests fly for longer than a second send waits, and a refusal is not kept under the key.
SLOW: Final = Theme(
    account="plain-lagged",
    contract={"flight_max": _stated(120), "rejections_stored": False},
    profile={"flight_seconds_max": 120, "stores_rejections": False},
    sends={"late": 1, "declined": 1},
    reads={"good": 1},
    acts={"send": 5, "look": 6, "bell": 5, "time": 1.5, "rule": 5, "sign": 5},
)
# It says how long a request flies, and not how long a sender may be silent before its first byte.
SLEEPY: Final = Theme(
    account="plain-unbounded",
    contract={"flight_max": _stated(2)},
    profile={"flight_seconds_max": 2},
    sends={"answer_lost": 1, "paused": 1},
    reads={"good": 1, "error": 3},
    acts={"send": 5, "look": 6, "bell": 5, "time": 1.5},
    sleeps_late=True,
)
# Answers get lost, the bank sends back what was paid, and the news of both come when they come.
FICKLE: Final = Theme(
    account="plain-main",
    sends={"good": 1, "answer_lost": 3},
    acts={"sent_back": 2, "shop_refund": 1, "notice": 4, "bell": 4, "look": 0.5},
)
# A colleague refunds equal amounts at the provider's desk, and answers are about any refund, or
# say *slow down* of one that was made.
CROWDED: Final = Theme(
    account="plain-nokeys",
    sends={"good": 1, "mixed_up": 3, "already": 2, "lost": 2},
    acts={"stranger": 3},
    second_copy="duplicate_429",
)
# Senders die, sleep and find nobody, and nobody can ask: one send follows the other in the dark.
DARK: Final = Theme(
    account="plain-forever",
    sends={"killed_after": 2, "answer_lost": 2, "refused": 3, "paused": 2},
    reads={"good": 1, "error": 4},
    acts={"send": 4, "look": 6, "end_leases": 4, "bell": 6, "time": 3},
    crowd=1,
    naps=12,
)
_THEMES: Final = (SLOW, SLEEPY, FICKLE, CROWDED, DARK)


def theme(seed: int) -> Theme | None:
    """What the schedule of this seed is about; most are about nothing in particular."""
    number, rest = divmod(seed, _EVERY)
    return _THEMES[number % len(_THEMES)] if rest == 1 else None
