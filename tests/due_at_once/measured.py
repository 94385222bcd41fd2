"""Figures from what the provider received. Pure; instants and durations are seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

WINDOW_SECONDS = 60
ALLOWED = 0.05


@dataclass(frozen=True, slots=True)
class Rates:
    """How often one account was asked, in whole windows from its first call on.

    `lowest` and `highest` are calls a second: of the slowest window in which there was more to ask
    than might be, and of the fastest of all. `windows` counts the former.
    """

    configured: float
    calls: int
    windows: int
    lowest: float
    highest: float

    @property
    def kept(self) -> bool:
        """Within a twentieth of what is configured, above and below."""
        return self.lowest >= self.configured * (
            1 - ALLOWED
        ) and self.highest <= self.configured * (1 + ALLOWED)

    @property
    def exceeded(self) -> bool:
        return self.highest > self.configured * (1 + ALLOWED)

    def shown(self) -> dict[str, Any]:
        return asdict(self) | {"kept": self.kept, "exceeded": self.exceeded}


def rates(calls: Iterable[float], configured: float, crowded_until: float) -> Rates:
    """Of one account, by when each of its calls came in.

    Until `crowded_until` more was due than might be asked: that far the rate must be reached. What
    comes after the last whole window is left out. A run shorter than one window is one window.
    """
    at = sorted(calls)
    if not at:
        return Rates(configured, 0, 0, 0.0, 0.0)
    began, span = at[0], at[-1] - at[0]
    width = min(WINDOW_SECONDS, span) or WINDOW_SECONDS
    count = max(1, int(span // width))
    found = [0] * count
    for each in at:
        place = int((each - began) // width)
        if place < count:
            found[place] += 1
    per_second = [each / width for each in found]
    crowded = max(1, min(count, int((crowded_until - began) // width)))
    return Rates(
        configured,
        len(at),
        crowded,
        round(min(per_second[:crowded]), 3),
        round(max(per_second), 3),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all values does not exceed; 0 for none."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * share) - 1)] if ranked else 0.0
