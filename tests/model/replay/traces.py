"""The traces: found on a model of the protocol with a rule left out, the shortest of their kind.

Each is a table of `tests/model/traces/*.toml`:

    name      what the test is called
    without   the rule of the protocol whose absence let the model find it
    harm      what went wrong then
    provider  what the provider keeps to; `flight` in ticks is the truth, "unbounded" where there is none
    ticks     of the send deadline, the flight, the lookup's lag, the key's window, the lease
    accepted  ticks of flight that two people accepted, by what for
    steps     what happens, one after the other; what the product does not do is passed over
    edits     guards (tests/red.toml): without any one of them the replay must end badly
    together  guards that stand behind each other: without all of one set it must end badly
    refunds   how many the book has in the end where no rule of ours can keep it to one, with `because`
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "traces"


@dataclass(frozen=True, kw_only=True)
class Provider:
    """`whole`: the refund is all of the payment, and a second one is declined."""

    keys: str
    lookup: str
    bounded: bool = True
    pausable: bool = False
    whole: bool = False
    keeps_refusals: bool = False
    notices: bool = False


@dataclass(frozen=True, kw_only=True)
class Ticks:
    send: int
    flight: int
    lag: int
    window: int
    lease: int


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One of a file of operations; see above."""

    name: str
    without: str
    harm: str
    steps: tuple[str, ...]
    provider: Provider
    ticks: Ticks
    accepted: dict[str, int] = field(default_factory=dict)
    fresh: int | None = None
    edits: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    refunds: int = 1
    denies: bool = False
    because: str = ""


_USUAL = {
    "provider": Provider(keys="window", lookup="now", notices=True),
    "ticks": Ticks(send=1, flight=2, lag=1, window=6, lease=2),
}


@dataclass(frozen=True, kw_only=True)
class OrderTrace:
    """Several refunds of one order. `wants` and `captured` are units.

    `learned`: in the end the ledger knows of everything that left the payment.
    """

    name: str
    without: str
    harm: str
    steps: tuple[str, ...]
    captured: int
    wants: tuple[int, ...]
    learned: bool = True
    edits: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()

    def frame(self) -> Trace:
        return Trace(name=self.name, without="", harm="", steps=(), **_USUAL)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class NoticeTrace:
    """Notices of one refund; not `answered`: they overtake the answer to our own call."""

    name: str
    without: str
    harm: str
    steps: tuple[str, ...]
    answered: bool = True
    edits: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()

    def frame(self) -> Trace:
        return Trace(name=self.name, without="", harm="", steps=(), **_USUAL)  # type: ignore[arg-type]


def _tables(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / file).read_text())["trace"]
    return found


@cache
def operations() -> tuple[Trace, ...]:
    """Every trace of one operation, by name, of every file."""
    found = []
    for path in sorted(FOLDER.glob("operation*.toml")):
        for row in _tables(path.name):
            given = row | {
                "provider": Provider(**row["provider"]),
                "ticks": Ticks(**row["ticks"]),
                "steps": tuple(row["steps"]),
                "edits": tuple(row.get("edits", ())),
                "together": _sets(row),
            }
            found.append(Trace(**given))
    return tuple(found)


@cache
def orders() -> tuple[OrderTrace, ...]:
    """Every trace of several refunds of one order."""
    rows = [*_tables("orders.toml"), *_tables("siblings.toml")]
    return tuple(OrderTrace(**_as_tuples(row)) for row in rows)


@cache
def notices() -> tuple[NoticeTrace, ...]:
    """Every trace of notices."""
    return tuple(NoticeTrace(**_as_tuples(row)) for row in _tables("notices.toml"))


def _as_tuples(row: dict[str, Any]) -> dict[str, Any]:
    tuples = {name: tuple(each) if isinstance(each, list) else each for name, each in row.items()}
    return tuples | {"together": _sets(row)}


def _sets(row: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(each) for each in row.get("together", ()))


_TEST = "tests/model/test_replays.py::test_a_trace_of_{}_is_harmless[{}]"


def replays() -> list[tuple[str, str]]:
    """Every trace with the id of the test that replays it."""
    named = {
        "one_refund": [each.name for each in operations()],
        "one_order": [each.name for each in orders()],
        "notices": [each.name for each in notices()],
    }
    return [(name, _TEST.format(kind, name)) for kind, names in named.items() for name in names]


def replay_of(name: str) -> str:
    """The id of the test that replays this trace."""
    return dict(replays())[name]


def edits_of_traces() -> dict[tuple[str, ...], list[str]]:
    """The guards that traces name, one by itself or some together, each with its traces."""
    found: dict[tuple[str, ...], list[str]] = {}
    every: list[Trace | OrderTrace | NoticeTrace] = [*operations(), *orders(), *notices()]
    for each in every:
        for guards in (*((edit,) for edit in each.edits), *each.together):
            found.setdefault(guards, []).append(each.name)
    return found
