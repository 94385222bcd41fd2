"""Alarms in words: a reading in its unit, the figures it is held against, whether quiet is quiet."""

from __future__ import annotations

from datetime import datetime, timedelta

from review.presenters.words import Clock, count_of, span

# The monitors run each minute; after so long their silence is no all clear.
ALIVE = timedelta(minutes=5)


def reading(value: float, unit: str) -> str:
    """ "12 min over the target", "3.2 % of the day", "2 payments"."""
    if unit == "s" or unit.startswith("s ") or unit.startswith("s,"):
        return f"{span(timedelta(seconds=value))}{unit[1:]}"
    if value == 1:
        unit = unit.replace("payments", "payment").replace("refunds", "refund")
        unit = unit.replace("findings", "finding").replace("days", "day")
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:.3g} {unit}"


def held_against(
    warn: float | None, page: float | None, unit: str, *, falling: bool = False
) -> str:
    """ "warns above 30 min, pages above 4 h"; of 0: "pages at the first"; `falling`: "below"."""
    than = "below" if falling else "above"
    parts = [
        f"{word} at the first" if figure == 0 else f"{word} {than} {_figure(figure, unit)}"
        for word, figure in (("warns", warn), ("pages", page))
        if figure is not None
    ]
    return ", ".join(parts)


def _figure(figure: float, unit: str) -> str:
    if unit == "s" or unit.startswith(("s ", "s,")):
        return span(timedelta(seconds=figure))
    return f"{figure:g} %" if unit.startswith("%") else f"{figure:g}"


def name_word(name: str) -> str:
    """ "Unknown past target"."""
    return name.replace("_", " ").capitalize()


def summary(
    firing: int,
    without_data: int,
    ran_at: datetime | None,
    oldest_at: datetime | None,
    clock: Clock,
) -> str:
    """The sentence at the top: quiet is said only while every monitor has data."""
    if ran_at is None:
        return "The monitors have never run. Do not read this as all clear."
    if clock.now - ran_at > ALIVE:
        since = clock.minutes(ran_at)
        return f"The monitors have not run since {since}. Do not read this as all clear."
    if without_data:
        return (
            f"{count_of(without_data, 'signal')} cannot be computed. Do not read this as all clear."
        )
    if firing:
        return f"{count_of(firing, 'alarm')} firing. All monitors have data."
    age = clock.age(oldest_at or ran_at)
    return f"All monitors have data and none is firing. Oldest data point: {age}."
