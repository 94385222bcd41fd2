"""What a state of the model of one refund consists of, and the world it is played in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

HOLDING = frozenset({"submitting", "pending", "unknown"})
SAYS_NO = frozenset(
    {
        *("proposed", "awaiting_approval", "authorized", "denied", "rejected", "withdrawn"),
        *("expired", "failed"),
    }
)
ENDED = frozenset(
    {
        *("succeeded", "mismatched", "returned", "failed"),
        *("denied", "rejected", "withdrawn", "expired"),
    }
)
# It may have been sent, and a row says so.
SENT = HOLDING | {"succeeded"}
# Where the sender of an attempt is.
READY, CHECKED, WAITS, HOLDS_ANSWER, GONE = "ready", "checked", "waits", "holds", "gone"
NOT_EXECUTED = frozenset({"not_sent", "turned_away"})


@dataclass(frozen=True, kw_only=True)
class World:
    """What the provider keeps to, what may go wrong, and which parts of the table are played.

    Ticks: `send` deadline, `flight` of a request, `lag` of a lookup, `window` of a key, `lease`.
    `hop`: somebody between us and the provider answers by itself. `broken`: a promised bound that
    does not hold. `asynchronous`: refunds are accepted first. `early`: begins with the proposal.
    """

    keys: str = "window"
    lookup: bool = True
    keeps_refusals: bool = False
    polices: bool = False
    pausable: bool = False
    bounded: bool = True
    touches: bool = False
    send: int = 1
    flight: int = 1
    lag: int = 1
    window: int = 4
    lease: int = 1
    attempts: int = 2
    lookups: int = 1
    faults: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    only: str = ""


class Attempt(NamedTuple):
    sender: str
    hand: str = ""  # the answer it holds
    outcome: str = ""  # what it recorded, or what evidence settled
    age: int = 0
    flies: int = -1  # ticks since it was written; -1: not on its way


class Look(NamedTuple):
    """A lookup: whether it began late enough to prove an absence, and what it was shown."""

    late: bool
    shown: str = ""


class State(NamedTuple):
    state: str
    approval: str = "none"  # none, fresh, stale
    attempts: tuple[Attempt, ...] = ()
    looks: tuple[Look, ...] = ()  # in the order of their numbers
    lease: int = 0
    first: int = -1  # the age of the first attempt
    held: int = 0
    paid: int = 0
    paid_age: int = 0
    book: str = ""  # what the provider says of the refund: succeeded, pending, failed, otherwise
    key: int = -1  # ticks since the provider knows our key
    answer: str = ""  # what it keeps under the key
    case: bool = False
    ruled: bool = False  # the end rests on people's word alone
    page: bool = False  # a console that read `authorized` before
    taken_back: bool = False  # the approver was told so
    promise: str = "kept"
    stranger: bool = False  # somebody else refunded as much
    lost: bool = False  # rows that permitted a send are gone, and not all of it was looked at
    why: str = ""


Moves = Iterator[tuple[str, State]]


@dataclass(frozen=True)
class Part:
    """A part of the model; `world` is the same in all of them."""

    world: World

    def _end(self, s: State, state: str) -> State:
        return s._replace(state=state, held=0, lease=0, case=s.case and s.promise != "kept")

    @staticmethod
    def _set(s: State, index: int, **changed: Any) -> State:
        attempts = [*s.attempts]
        attempts[index] = attempts[index]._replace(**changed)
        return s._replace(attempts=tuple(attempts))

    def _explained(self, s: State, others: list[Attempt]) -> bool:
        """Whether each of these is known to have paid nothing, or to be the same as ours."""
        w = self.world
        # Every copy must have landed while the key lived, the latest as well.
        latest = s.first - min(each.age for each in s.attempts) + w.send + w.flight
        lived = w.keys == "window" and s.first <= w.window and latest <= w.window
        alive = w.keys == "forever" or lived
        kept = w.keeps_refusals or "explained.kept" in w.off
        by_key = alive and w.keys in ("forever", "window") and kept
        return all(
            each.outcome in NOT_EXECUTED or each.outcome == "refused" or by_key for each in others
        )
