"""What two of five seeds are about: a contract that no account of the sandbox has, and its weather.

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

    `sends`, `reads`, `commits`, `crowd` and `eager` are instead of the weather's, `acts` are weights beside its own.
    `sleeps_late`: a sender sleeps after its last look at the clock, not before it; `naps`: how often
    others have their turn meanwhile, and while an answer is slow. `second_copy`: what its sender
    hears of a request that a hop sent twice. `parcels`: how many more refunds the first order has.
    `statements`: people bring the provider's statement also where it can be asked, and say what
    became of the refund where their page lets them.
    """

    account: str
    contract: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, object] = field(default_factory=dict)
    sends: dict[str, float]
    reads: dict[str, float] = field(default_factory=dict)
    commits: dict[str, float] = field(default_factory=dict)
    acts: dict[str, float] = field(default_factory=dict)
    crowd: float | None = None
    eager: float | None = None
    sleeps_late: bool = False
    naps: int = 1
    second_copy: str = "already_refunded"
    parcels: int = 0
    statements: bool = False

    def over(self, weather: Weather) -> Weather:
        """This weather, with more of what the theme is about."""
        return replace(
            weather,
            sends=self.sends or weather.sends,
            reads=self.reads or weather.reads,
            commits=self.commits or weather.commits,
            acts={**weather.acts, **self.acts},
            crowd=weather.crowd if self.crowd is None else self.crowd,
            eager=weather.eager if self.eager is None else self.eager,
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
    contract={"flight_max": _stated(2), "key_window": _stated(20)},
    profile={"flight_seconds_max": 2, "key_window_seconds": 20},
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
# A key lives for some seconds, and what was paid under it is not shown while nobody can ask.
SHORT: Final = Theme(
    account="plain-main",
    contract={"key_window": _stated(20), "escalation_grace_seconds": 3600},
    profile={"key_window_seconds": 20},
    sends={"answer_lost": 1},
    reads={"good": 1, "error": 9},
    commits={"good": 1},
    acts={"send": 10, "look": 30, "bell": 10, "time": 10},
    eager=0.95,
)
# Several refunds of one order, of which the provider declines some: their money comes back.
PARCELS: Final = Theme(
    account="plain-forever",
    sends={"good": 1, "declined": 3},
    acts={"send": 8, "bell": 4, "time": 1},
    parcels=2,
)
# Approvals are taken back while the refund is on its way.
PRESSED: Final = Theme(
    account="plain-nokeys",
    sends={"good": 2, "slow": 1, "answer_lost": 1},
    acts={"send": 6, "revoke": 8, "approve": 4, "time": 1},
    crowd=1,
)
# People are asked while requests still fly, and bring the provider's statement.
SIGNED: Final = Theme(
    account="plain-lagged",
    contract={"flight_max": _stated(40)},
    profile={"flight_seconds_max": 40},
    sends={"late": 1, "lost": 1},
    reads={"good": 1, "error": 6},
    commits={"good": 1},
    acts={"send": 16, "poison": 8, "rule": 20, "sign": 16, "time": 8},
    statements=True,
)
# What a list showed is old when it is read: meanwhile the bank sent the money back.
OLD_NEWS: Final = Theme(
    account="plain-main",
    sends={"answer_lost": 1},
    reads={"good": 1, "slow": 3},
    commits={"good": 1},
    acts={"send": 4, "look": 10, "sent_back": 5, "time": 2},
    crowd=1,
    naps=3,
)
_THEMES: Final = {
    1: (SLOW, SLEEPY, FICKLE, CROWDED, DARK),
    3: (SHORT, PARCELS, PRESSED, SIGNED, OLD_NEWS),
}


def theme(seed: int) -> Theme | None:
    """What the schedule of this seed is about; most are about nothing in particular."""
    number, rest = divmod(seed, _EVERY)
    of = _THEMES.get(rest)
    return of[number % len(of)] if of else None
