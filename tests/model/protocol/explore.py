"""Visits every state that a model can reach, breadth first, so that the first fault has a shortest way.

A model says where it begins, what can happen in a state, what is wrong with a state, and where it may
rest. Nothing is drawn by chance: what holds here holds for every order of events within the bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol


class Model[S: Hashable](Protocol):
    def starts(self) -> Iterable[S]: ...

    def moves(self, state: S) -> Iterator[tuple[str, S]]: ...

    def fault(self, state: S) -> str: ...

    def rests(self, state: S) -> bool: ...


@dataclass(frozen=True)
class Explored:
    """`fault` is empty when nothing is wrong in any state; `way` leads to the first that is.

    `stuck` leads to a state from which no resting place can be reached any more; `happened` are the
    words of everything that happened anywhere.
    """

    states: int
    fault: str = ""
    way: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    happened: frozenset[str] = field(default=frozenset())


def explore[S: Hashable](model: Model[S], *, states_max: int = 2_000_000) -> Explored:
    """Every state, or the first fault; raises OverflowError beyond `states_max`."""
    came: dict[S, tuple[S, str] | None] = dict.fromkeys(model.starts())
    before: dict[S, list[S]] = {}
    happened: set[str] = set()
    layer = [*came]
    while layer:
        following = []
        for state in layer:
            for word, after in model.moves(state):
                happened.add(word)
                if after != state:
                    before.setdefault(after, []).append(state)
                if after in came:
                    continue
                came[after] = (state, word)
                if fault := model.fault(after):
                    return Explored(len(came), fault, _way(came, after))
                following.append(after)
        if len(came) > states_max:
            raise OverflowError(f"more than {states_max} states")
        layer = following
    stuck = _stuck(model, came, before)
    return Explored(len(came), stuck=stuck, happened=frozenset(happened))


def _way[S: Hashable](came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    words = []
    while (step := came[state]) is not None:
        state, word = step
        words.append(word)
    return tuple(reversed(words))


def _stuck[S: Hashable](
    model: Model[S], came: dict[S, tuple[S, str] | None], before: dict[S, list[S]]
) -> tuple[str, ...]:
    """The way to a state from which nothing rests, or nothing."""
    good = {state for state in came if model.rests(state)}
    ahead = [*good]
    while ahead:
        for state in before.get(ahead.pop(), ()):
            if state not in good:
                good.add(state)
                ahead.append(state)
    lost = next((state for state in came if state not in good), None)
    return () if lost is None else _way(came, lost) or ("at once",)
