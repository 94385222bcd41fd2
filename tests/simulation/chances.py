"""What a schedule on paper has in store: drawn once per seed, many kinds of faults not at all."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from refunds.domain.contract import Accepted, Scope

SENDS: Final = ("not_sent", "turned_away", "killed", "slept", "lost", "late", "answer_lost")
READS: Final = ("cannot_tell", "slow", "lost")
# What two people may have accepted where no flight is stated: as long as lists lag, and then some.
ACCEPTED_SECONDS: Final = 40
_WEATHER_SECONDS: Final = (30, 300, 1800, 5400)


@dataclass(frozen=True)
class Bet:
    """Two people said that nothing comes later. Where `is_lost` it does: what they accepted the
    figure for may then go wrong, and nothing else may."""

    accepted: tuple[Accepted, ...] = ()
    is_lost: bool = False

    @property
    def may_pay_twice(self) -> bool:
        return self.is_lost and self.accepted[0].scope == "resend"


def bet(dice: Random) -> Bet:
    """A figure for resends or for absence, true or not."""
    scope: Scope = dice.choice(("resend", "absence"))
    accepted = (Accepted(1, "flight_max", ACCEPTED_SECONDS, scope),)
    return Bet(accepted, is_lost=dice.random() < 0.5)


@dataclass(frozen=True)
class Chances:
    """Weights of the fates; from `calm_from` on, seconds of the schedule, all goes well."""

    dice: Random
    calm_from: float
    weights: dict[str, int]

    def fate(self, of: tuple[str, ...], now: float) -> str:
        """`good`, or one of these."""
        if now >= self.calm_from:
            return "good"
        names = ("good", *of)
        return self.dice.choices(names, [self.weights[each] for each in names])[0]


def calm_from(dice: Random) -> float:
    return float(dice.choice(_WEATHER_SECONDS))


def weights(dice: Random) -> dict[str, int]:
    """Few kinds of faults, each of them often, meet more than all of them now and then."""
    return {"good": 2} | {each: dice.choice((0, 0, 1, 4)) for each in (*SENDS, *READS)}
