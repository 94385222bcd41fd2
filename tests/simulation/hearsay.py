"""A provider on paper: contracts of every kind, and one that keeps exactly what they promise.

Seconds are those of the schedule. Where a contract says nothing, the provider takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Final, Literal

from refunds.domain.contract import UNKNOWN_FACT, Fact, ProviderContract

# Where nothing is promised: longer than any figure below, shorter than a schedule.
_UNPROMISED_SECONDS: Final = 1500.0
_FLIGHT, _LAG, _IDLE = (Fact(each, "documented", "on paper") for each in (40, 20, 15))
_WINDOWS: Final = tuple(Fact(each, "documented", "on paper") for each in (60, 300, 7200))


def _contracts() -> tuple[ProviderContract, ...]:
    bounds = (
        (_FLIGHT, _LAG, _IDLE),
        (_FLIGHT, _LAG, UNKNOWN_FACT),
        (UNKNOWN_FACT, _LAG, _IDLE),
        (_FLIGHT, UNKNOWN_FACT, _IDLE),
    )
    keys: tuple[tuple[Literal["none", "weak", "window", "forever"], Fact], ...] = (
        ("none", UNKNOWN_FACT),
        ("weak", UNKNOWN_FACT),
        *(("window", each) for each in (*_WINDOWS, UNKNOWN_FACT)),
        ("forever", UNKNOWN_FACT),
    )
    lookups: tuple[Literal["none", "lagged"], ...] = ("lagged", "none")
    return tuple(
        ProviderContract(
            name=f"{kind} {window.seconds}, {number}, {'kept' if kept else 'not kept'}, {lookup}",
            keys=kind,
            key_window=window,
            rejections_stored=kept,
            lookup=lookup,
            flight_max=flight,
            lookup_lag=lag,
            idle_close=idle,
        )
        for (kind, window), (number, (flight, lag, idle)), kept, lookup in product(
            keys, enumerate(bounds), (False, True), lookups
        )
        # Where nothing can be asked, a lag is no question; nor is a memory where keys mean nothing.
        if (lookup == "lagged" or number in {0, 2}) and (not kept or kind in {"window", "forever"})
    )


CONTRACTS: Final = _contracts()


@dataclass(frozen=True, slots=True)
class Paid:
    """One refund in the book; lists show it from `visible_at` on."""

    ref: str
    at: float
    visible_at: float


@dataclass
class Paper:
    """Executes what lands; `book` is what it did, `flying` what may still land."""

    contract: ProviderContract
    dice: Random
    refuses: float
    book: list[Paid] = field(default_factory=list)
    flying: int = 0
    # What it keeps to although its contract does not say so.
    flight_max: float | None = None
    _first: tuple[float, Paid | None] | None = None

    def flight_seconds(self, *, late: bool) -> float:
        """How long this request takes from its last byte to its execution."""
        bound = self.contract.flight_max.seconds
        promised = self.flight_max if bound is None else float(bound)
        longest = _UNPROMISED_SECONDS if promised is None else promised
        return self.dice.choice((longest, self.dice.uniform(0, longest))) if late else 0.05

    def closes_before(self, slept: float) -> bool:
        """Whether a connection that was silent for so long is closed."""
        patience = self.contract.idle_close.seconds
        return patience is not None and slept > patience

    def lands(self, at: float) -> Paid | None:
        """Executed now: the refund that the key stands for, or None: refused."""
        self.flying -= 1
        if self._first is not None and self._remembers(self._first[0], at):
            return self._first[1]
        if self.dice.random() < self.refuses:
            if self.contract.rejections_stored:
                self._first = (at, None)
            return None
        made = Paid(f"rf_{len(self.book) + 1}", at, at + self._lag())
        self.book.append(made)
        self._first = (at, made)
        return made

    def may_still_pay(self, at: float) -> bool:
        """Whether what is on its way could be executed; a refusal that the key keeps could not."""
        kept = self._first is not None and self._first[1] is None
        return self.flying > 0 and not (
            kept and self._first and self._remembers(self._first[0], at)
        )

    def shown(self, at: float) -> list[Paid]:
        """What a complete list shows."""
        return [each for each in self.book if each.visible_at <= at]

    def _lag(self) -> float:
        bound = self.contract.lookup_lag.seconds
        longest = _UNPROMISED_SECONDS if bound is None else float(bound)
        return self.dice.choice((0.0, longest, self.dice.uniform(0, longest)))

    def _remembers(self, first: float, at: float) -> bool:
        if self.contract.keys == "forever":
            return True
        window = self.contract.key_window.seconds
        if self.contract.keys != "window":
            return False
        return at <= first + (window if window is not None else self.dice.choice((1, 600)))
