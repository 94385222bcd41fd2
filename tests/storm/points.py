"""Fault points: where a process of a test build may be struck, and by what.

An order to strike is an empty file `<orders>/<point>/<number>-<kind>`. Whoever passes the point
first takes the file away by renaming it into `<orders>/struck/`, so that each order strikes once,
in whichever process; the new name says where, how and which process. Imports nothing of ours.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ORDERS_VARIABLE = "STORM_ORDERS"
HITS_MIN = 5
REFUNDS_FOR_A_ROUND, ROUNDS_MAX = 300, 10
# Inside a process: each side of each commit, connect, first byte, answer and acknowledgement.
IN_SENDERS = ("claim", "connect", "first-byte", "answer", "record", "ack")
IN_FINDERS = ("lookup", "decision")
IN_WEB = ("proposal", "approval", "notice")
# Between a process and the database, by whoever carries the bytes: at COMMIT, in each direction.
AT_COMMIT = tuple(
    f"commit-{name}"
    for name in ("claim", "answer", "lookup", "decision", "proposal", "approval", "notice")
)
KINDS = ("exit", "stop", "cut-db", "raise", "delay")
SIDES = ("before", "after")


def points_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Both sides of each."""
    return tuple(f"{name}.{side}" for name in names for side in SIDES)


INSIDE = points_of((*IN_SENDERS, *IN_FINDERS, *IN_WEB))
POINTS = (*INSIDE, *points_of(AT_COMMIT))


@dataclass(frozen=True)
class Struck:
    """One fault that happened."""

    point: str
    number: int
    kind: str
    pid: int


def planned(seed: int, refunds: int) -> list[tuple[str, str]]:
    """(point, kind) of every fault of a storm: each kind at each point, again for more refunds.

    A storm too small for one round gets its share of one.
    """
    orders = [(point, kind) for point in INSIDE for kind in KINDS]
    orders += [(point, "cut-db") for point in points_of(AT_COMMIT) for _ in range(HITS_MIN)]
    one_round = len(orders)
    orders *= min(ROUNDS_MAX, max(1, refunds // REFUNDS_FOR_A_ROUND))
    random.Random(f"faults-{seed}").shuffle(orders)
    if refunds < REFUNDS_FOR_A_ROUND:
        return orders[: one_round * refunds // REFUNDS_FOR_A_ROUND]
    return orders


def hits_due(refunds: int) -> int:
    """How often each point must be hit in a storm of so many refunds."""
    return HITS_MIN if refunds >= REFUNDS_FOR_A_ROUND else 0


def lay_out(orders: Path) -> None:
    """The folders, empty."""
    for name in (*POINTS, "struck"):
        (orders / name).mkdir(parents=True, exist_ok=True)


def give(orders: Path, point: str, number: int, kind: str) -> None:
    """From now on the next one at this point is struck."""
    (orders / point / f"{number}-{kind}").touch()


def take(orders: Path, point: str) -> str | None:
    """The kind of fault that strikes here and now, taken away for good; usually None."""
    try:
        waiting = sorted(os.listdir(orders / point))
    except FileNotFoundError:
        return None
    for name in waiting:
        try:
            (orders / point / name).rename(orders / "struck" / f"{point}--{name}--{os.getpid()}")
        except FileNotFoundError:
            continue  # another process was here first
        return name.partition("-")[2]
    return None


def struck(orders: Path) -> list[Struck]:
    """Everything that happened so far."""
    found = []
    for name in os.listdir(orders / "struck"):
        point, order, pid = name.split("--")
        number, _, kind = order.partition("-")
        found.append(Struck(point, int(number), kind, int(pid)))
    return found


def call_off(orders: Path) -> int:
    """Take away whatever nobody has come upon; how many those were."""
    left = [each for point in POINTS for each in (orders / point).iterdir()]
    for each in left:
        each.unlink(missing_ok=True)
    return len(left)


def hits(happened: list[Struck]) -> dict[str, int]:
    """How often each point was hit, those too that never were."""
    counted = Counter(each.point for each in happened)
    return {point: counted[point] for point in POINTS}
