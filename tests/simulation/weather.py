"""What a schedule has in store: every chance is drawn once per seed, many of them to nothing.

Swarm weighting: a schedule with few kinds of faults, each of them often, meets more than one in
which everything happens now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

# What may become of a call that creates a refund, beside a good answer.
SENDS = (
    "refused",  # no connection
    "paused",  # connected, and the sender sleeps before its first byte
    "killed_before",  # the sender dies before its first byte
    "lost",  # the request never arrives
    "late",  # the request is executed when its sender has long given up
    "passed_on_429",  # a hop in front says 429 and passes the request on
    "killed_after",  # the sender dies when the provider has executed
    "answer_lost",
    "error_after",  # the provider executed, and a hop answers 502
    "slow",  # the answer comes after the lease
    "declined",  # the provider says no for good
    "turned_away",  # the provider does not let us in, or not so soon
    "hop_401",  # a hop in front does not let us in and passes nothing on
    "already",  # the provider executed; what is heard is that there is one already
    "redirected",  # executed, and the answer sends the caller elsewhere
    "mixed_up",  # never arrived; what is heard is the answer about another refund
)
READS = ("lost", "error", "killed_after", "slow")
# Without these nothing happens at all; the weights are those of every schedule.
_WORK = {"send": 5.0, "time": 4.0, "look": 3.0}
_HELP = ("bell", "end_leases", "probe", "notice", "notice_sweep", "lists", "tend")
# Each of them can end what the others are about, so they are rarer.
_PEOPLE = ("expire", "withdraw", "revoke", "propose", "freeze", "stop")
_OUTSIDE = ("feed", "stranger", "shop_refund", "sent_back")
# Where something waits for people, they come.
_CASES = ("approve", "claim_case", "rule", "sign")
NOTICES = ("lost", "twice", "unheard", "forged", "stale")
_PASSING_SECONDS = (0.2, 1, 2, 5, 12, 30, 65, 130, 300, 610, 1800)


@dataclass(frozen=True)
class Weather:
    """Weights by name, and the dice of one schedule."""

    dice: Random
    sends: dict[str, float]
    reads: dict[str, float]
    acts: dict[str, float]
    commits: dict[str, float]
    notices: dict[str, float]
    crowd: float  # how often others act while a call travels
    eager: float  # how often a bell is heard at once

    def fate(self, reads: bool) -> str:
        """What becomes of this call: `good`, or one of SENDS or READS."""
        return self._drawn(self.reads if reads else self.sends)

    def commit(self) -> str:
        """What becomes of this commit: `good`, or the connection breaks before it or after."""
        return self._drawn(self.commits)

    def notice(self) -> str:
        """What becomes of this notice: `good`, or one of NOTICES."""
        return self._drawn(self.notices)

    def act(self) -> str:
        return self._drawn(self.acts)

    def passing_seconds(self) -> float:
        return self.dice.choice(_PASSING_SECONDS)

    def _drawn(self, weights: dict[str, float]) -> str:
        return self.dice.choices([*weights], [*weights.values()])[0]


def weather(seed: int) -> Weather:
    """The same weather for the same seed."""
    dice = Random(seed)

    def weights(names: tuple[str, ...], *chances: float) -> dict[str, float]:
        return {name: dice.choice(chances) for name in names}

    return Weather(
        dice=dice,
        sends={"good": dice.choice((1, 3))} | weights(SENDS, 0, 0, 0, 1, 4),
        reads={"good": 4} | weights(READS, 0, 0, 0, 1, 4),
        acts=_WORK
        | weights(_HELP, 0, 1, 4)
        | weights((*_PEOPLE, *_OUTSIDE), 0, 0, 0, 0.2, 0.8)
        | weights(_CASES, 0, 0.5, 2),
        commits={"good": 30} | weights(("cut_before", "cut_after"), 0, 0, 1, 4),
        notices={"good": 3} | weights(NOTICES, 0, 0, 1, 3),
        crowd=dice.choice((0, 0.3, 0.8)),
        eager=dice.choice((0, 0.5, 0.95)),
    )
