"""Which worlds the rules hold in, and which rule's absence hurts in which of them.

Each removal is a rule, the world in which it is left out, and how a fault must begin to count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.model.protocol.explore import Model
from tests.model.protocol.notices import Notices
from tests.model.protocol.operation import Operation
from tests.model.protocol.order import Order
from tests.model.protocol.values import World

_SMALL = World(attempts=2)
_NO_KEYS, _WINDOW = replace(_SMALL, keys="none"), _SMALL
_FOREVER, _WEAK = replace(_SMALL, keys="forever"), replace(_SMALL, keys="weak")


def _with(world: World, *faults: str, **more: Any) -> World:
    return replace(world, faults=frozenset(faults), **more)


@dataclass(frozen=True)
class Run:
    """One exploration; `off` is empty where every rule is in place."""

    name: str
    model: Model[Any]
    off: str = ""

    @property
    def part(self) -> str:
        return type(self.model).__name__.lower()


WORLDS: dict[str, World] = {
    "no keys": _NO_KEYS,
    "no keys, no lookup": replace(_NO_KEYS, lookup=False),
    "no keys, no bound": replace(_NO_KEYS, bounded=False),
    "no keys, pausable": replace(_NO_KEYS, pausable=True),
    "weak keys": _WEAK,
    "window": _WINDOW,
    "window, no lookup": replace(_WINDOW, lookup=False),
    "window, no bound": replace(_WINDOW, bounded=False),
    "window, refusals kept": replace(_WINDOW, keeps_refusals=True),
    "keys forever": _FOREVER,
    "keys forever, refusals kept": replace(_FOREVER, keeps_refusals=True),
    "totals policed": replace(_NO_KEYS, polices=True),
    "from the proposal on": _with(_NO_KEYS, "early", "changes", attempts=1),
    "changes and take-backs": _with(_WINDOW, "changes", "takes_back", "turns_away"),
    "answers of a hop": _with(_NO_KEYS, "hop", "unlisted", "turns_away"),
    "accepted first": _with(_NO_KEYS, "async", attempts=1),
    "comes back": _with(_NO_KEYS, "comes_back", attempts=1),
    "paid otherwise, people rule": _with(_NO_KEYS, "otherwise", "people", "async", attempts=1),
    "no lookup, people rule": _with(_NO_KEYS, "people", attempts=1, lookup=False),
    "another system's": _with(_NO_KEYS, "adopted", "people", "comes_back", attempts=1),
    "a stranger refunds as much": _with(_NO_KEYS, "stranger", attempts=1),
    "a bound that does not hold": _with(_NO_KEYS, "broken", "people", attempts=1),
    "a key counted from its first sight": _with(_WINDOW, "turns_away", touches=True),
    "the newest rows are lost": _with(_NO_KEYS, "loses", "people"),
    "the newest rows are lost, paid otherwise": _with(_NO_KEYS, "loses", "otherwise", "people"),
    "the newest rows are lost, no lookup": _with(_NO_KEYS, "loses", "people", lookup=False),
    "two lookups at once": replace(_NO_KEYS, lookups=2, attempts=1),
}

_REMOVED: tuple[tuple[str, str, World, str], ...] = (
    ("claim.recorded", "paid twice", _NO_KEYS, "paid twice"),
    ("claim.recorded", "says no", _WINDOW, "authorized"),
    ("claim.conditional", "paid twice", _NO_KEYS, "paid twice"),
    ("claim.checks", "stale", _with(_WINDOW, "changes"), "sent on an approval"),
    ("commit.confirmed", "paid twice", _NO_KEYS, "paid twice"),
    ("commit.survives", "says no", _WINDOW, "authorized"),
    ("lease.unknown", "paid twice", _NO_KEYS, "paid twice"),
    ("lease.unknown", "says no", _WINDOW, "authorized"),
    ("lost.unknown", "false end", _WINDOW, "failed"),
    ("refusal.explained", "false end", _WINDOW, "failed"),
    ("refusal.explained", "false end, keys for ever", _FOREVER, "failed"),
    ("refusal.outranks", "sent again", _with(_WINDOW, "turns_away"), "sent again"),
    ("already.unknown", "false end", replace(_with(_NO_KEYS, "resends"), polices=True), "failed"),
    ("back.every", "says no", _with(_WINDOW, "turns_away"), "authorized"),
    ("decision.fenced", "written over", _WINDOW, "an end was written over"),
    ("key.one", "paid twice", _FOREVER, "paid twice"),
    ("key.window", "paid twice", _WINDOW, "paid twice"),
    ("key.flight", "paid twice", replace(_WINDOW, flight=2), "paid twice"),
    ("key.flight", "paid twice, no bound", replace(_WINDOW, bounded=False), "paid twice"),
    ("key.first", "paid twice", replace(_WINDOW, lookup=False, attempts=3), "paid twice"),
    (
        "key.first",
        "paid twice, counted from its first sight",
        _with(_WINDOW, "turns_away", touches=True, attempts=3),
        "paid twice",
    ),
    ("key.weak", "paid twice", replace(_WEAK, attempts=2), "paid twice"),
    ("quiet", "paid twice", _NO_KEYS, "paid twice"),
    ("quiet", "false end", _WINDOW, "failed"),
    ("quiet.send", "paid twice", _NO_KEYS, "paid twice"),
    ("quiet.flight", "paid twice", _NO_KEYS, "paid twice"),
    ("quiet.lag", "paid twice", _NO_KEYS, "paid twice"),
    ("quiet.begun", "paid twice", _NO_KEYS, "paid twice"),
    ("quiet.latest", "false end", _WINDOW, "failed"),
    ("bounded", "paid twice", replace(_NO_KEYS, bounded=False), "paid twice"),
    ("pausable", "paid twice", replace(_NO_KEYS, pausable=True), "paid twice"),
    ("deadline", "paid twice", _NO_KEYS, "paid twice"),
    ("people.quiet", "false end", _with(_NO_KEYS, "people", attempts=1), "failed"),
    ("marker", "false success", _with(_NO_KEYS, "stranger", attempts=1), "succeeded"),
    ("hop.envelope", "says no", _with(_FOREVER, "hop"), "authorized"),
    ("hop.envelope", "paid twice", _with(_NO_KEYS, "hop"), "paid twice"),
    ("hop.listed", "says no", _with(_FOREVER, "unlisted"), "authorized"),
    ("hop.listed", "paid twice", _with(_NO_KEYS, "unlisted"), "paid twice"),
    ("sweeper.no-word", "says no", _FOREVER, "authorized"),
    ("sweeper.no-word", "paid twice", _NO_KEYS, "paid twice"),
    ("held.once", "leak", _with(_WINDOW, "turns_away"), "2 holds"),
    ("released", "leak", _with(_WINDOW, "turns_away"), "money is held"),
    ("take-back.checked", "told", _with(_FOREVER, "takes_back"), "told"),
    ("take-back.checked", "paid twice", _with(_NO_KEYS, "takes_back"), "paid twice"),
    ("take-back.before", "told", _with(_FOREVER, "takes_back"), "told"),
    ("take-back.before", "paid twice", _with(_NO_KEYS, "takes_back"), "paid twice"),
    ("explained.kept", "false end", _WINDOW, "failed"),
    ("explained.kept", "false end, keys for ever", _FOREVER, "failed"),
    (
        "otherwise.moves",
        "paid twice",
        _with(_NO_KEYS, "loses", "otherwise", "people"),
        "paid twice",
    ),
    (
        "reported.moves",
        "paid twice",
        _with(_NO_KEYS, "loses", "people", lookup=False),
        "paid twice",
    ),
    ("no hop resends", "paid twice", _with(_NO_KEYS, "resends"), "paid twice"),
)


def _events(*names: str) -> frozenset[str]:
    return frozenset(names)


ORDERS: dict[str, Order] = {
    "three that fit, one is new": Order(7, events=_events("newcomer", "outside")),
    "more than was captured": Order(5, (3, 3, 2), events=_events("outside", "not_executed")),
    "paid otherwise, comes back": Order(7, events=_events("otherwise", "comes_back", "edits")),
    "disputes": Order(7, events=_events("disputes", "not_executed")),
}
_ORDERS_REMOVED: tuple[tuple[str, Order, str], ...] = (
    ("taken", Order(5, (3, 3, 2)), ""),
    ("held", Order(5, (3, 3, 2)), "nothing is held"),
    ("one.transaction", Order(5, (3, 3, 2)), "booked"),
    ("booked.once", Order(5, (3, 3, 2)), "booked"),
    ("edited", Order(5, (3, 3, 2)), "changed under"),
    ("versions", Order(7, events=_events("newcomer")), "sent on"),
    ("moves", Order(7, events=_events("newcomer")), "sent on"),
    ("outside.moves", Order(7, events=_events("outside")), "sent on"),
    ("identity", Order(7, events=_events("newcomer")), "sent on"),
    ("sums", Order(7, events=_events("outside")), "sent on"),
    ("amounts", Order(7, events=_events("edits")), "sent on"),
    ("forgives otherwise", Order(7, events=_events("otherwise")), "sent on"),
    ("forgives released", Order(7), "sent on"),
    ("forgives taken_back", Order(7, events=_events("comes_back")), "sent on"),
    ("forgives outside", Order(7, events=_events("outside")), "sent on"),
    ("forgives disputed", Order(7, events=_events("disputes")), "sent on"),
    ("balance", Order(5, (3, 3, 2)), ""),
    ("lock", Order(7, events=_events("newcomer")), "sent on"),
    ("page", Order(7, events=_events("newcomer")), "sent on"),
)
_NOTICES_REMOVED = ("stored", "effect", "parked", "fenced", "asked", "rank")


def in_place() -> list[Run]:
    """Every rule in place: each of these must hold, and nothing may be stuck."""
    runs = [Run(name, Operation(world)) for name, world in WORLDS.items()]
    runs += [Run(name, Order(**vars(each))) for name, each in ORDERS.items()]
    return [*runs, Run("any order, doubled, readers die", Notices())]


def removals() -> list[Run]:
    """One rule left out: each of these must show a fault."""
    runs = []
    for off, harm, world, sought in _REMOVED:
        without = replace(world, off=frozenset({off}), only=sought)
        runs.append(Run(harm, Operation(without), off))
    for off, order, sought in _ORDERS_REMOVED:
        runs.append(Run(sought, replace(order, off=frozenset({off}), only=sought), off))
    runs += [Run("disagree", Notices(frozenset({off})), off) for off in _NOTICES_REMOVED]
    return runs
