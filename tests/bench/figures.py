"""What was measured, over rounds, against what must be reached. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

# With more of the machine used by others, wall time says nothing; counts and CPU seconds hold.
OTHER_CORES_MAX = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure must reach and what it should; `up` where more is better.

    `of_time`: it depends on nobody else using the machine.
    """

    must: float | None = None
    goal: float | None = None
    up: bool = False
    of_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The median of `rounds` values, in `unit`. `ratio` is that of two figures of one run, and
    what a bar speaks about where there is one."""

    name: str
    value: float
    unit: str
    rounds: int
    min: float
    max: float
    against: str | None = None
    ratio: float | None = None
    must: float | None = None
    goal: float | None = None
    met: bool | None = None
    reached: bool | None = None
    of_time: bool = False

    def shown(self) -> dict[str, Any]:
        return asdict(self)


def figure(
    name: str,
    values: Sequence[float],
    unit: str,
    bar: Bar | None = None,
    *,
    against: str | None = None,
    than: Sequence[float] = (),
) -> Figure:
    """One figure over its rounds; with `than`, the median of the ratios within a round.

    Raises ValueError where nothing was measured: no figure is made up.
    """
    if not values or (than and len(than) != len(values)):
        raise ValueError(f"{name}: {len(values)} rounds were measured, {len(than)} to compare with")
    bar = bar or Bar()
    ratio = None
    if than:
        ratio = statistics.median(
            mine / other for mine, other in zip(values, than, strict=True) if other
        )
    value = statistics.median(values)
    judged = value if ratio is None else ratio
    return Figure(
        name=name,
        value=round(value, 4),
        unit=unit,
        rounds=len(values),
        min=round(min(values), 4),
        max=round(max(values), 4),
        against=against,
        ratio=None if ratio is None else round(ratio, 3),
        must=bar.must,
        goal=bar.goal,
        met=_within(judged, bar.must, bar.up),
        reached=_within(judged, bar.goal, bar.up),
        of_time=bar.of_time,
    )


def _within(value: float, bar: float | None, up: bool) -> bool | None:
    if bar is None:
        return None
    return value >= bar if up else value <= bar


def failed(figures: Sequence[Figure], other_cores: float) -> list[str]:
    """The names of those that must be better. Time is not judged while others use the machine."""
    judged = [each for each in figures if not (each.of_time and other_cores > OTHER_CORES_MAX)]
    return [each.name for each in judged if each.met is False]


def line(each: Figure) -> str:
    """One figure for people."""
    said = f"{each.name}: {each.value:g} {each.unit} ({each.min:g} to {each.max:g})"
    if each.ratio is not None:
        said += f", {each.ratio:g} of {each.against}"
    if each.must is not None:
        said += f"; must {each.must:g}, {'met' if each.met else 'NOT MET'}"
    if each.goal is not None:
        said += f"; goal {each.goal:g}, {'reached' if each.reached else 'not reached'}"
    return said


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all values does not exceed; 0 for none."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * share) - 1)] if ranked else 0.0
