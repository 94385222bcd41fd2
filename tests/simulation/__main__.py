"""`make simulate`: many schedules, each by its seed, and what is wrong after each.

    SCHEDULES=10000 SEED=1 python -m tests.simulation

Nineteen in twenty play what decides alone, under contracts of every kind (core.py); the rest, or
DATABASE= of them, the real engine on a real database (world.py). SEEDS="core:7 database:12" names
some to play before those. JSON=1 makes the last line one JSON object. FIRST=1 ends with the first
finding. BREAK=NAME takes one guard out (see broken.py); the run must then end with 1. MUTATIONS=1
takes the rules of switches.toml out instead, one after the other, each in a copy of the work tree.
Ends with 0 when no checker found anything, 1 when one did, 2 for unusable input, 3 when a guard was
taken out and nothing noticed.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import tests.environment as environment
from tests.simulation import about_the_book

_SHOWN_MAX = 3
Played = tuple[list[str], Counter[str]]


def main() -> int:
    if os.environ.get("MUTATIONS"):
        from tests.simulation import mutations

        return mutations.main()
    try:
        seed, played = _asked()
    except ValueError:
        print("SCHEDULES, SEED and DATABASE are whole numbers, SEEDS are like database:12.")
        return 2
    environment.pytest_configure()
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from tests.simulation.broken import MODES

    broken = os.environ.get("BREAK", "")
    if broken and broken not in MODES:
        print(f"BREAK is one of: {', '.join(MODES)}.")
        return 2
    if broken:
        MODES[broken]()
    first_only = bool(broken or os.environ.get("FIRST"))
    return _told(_run(seed, played, first_only), broken)


def _asked() -> tuple[int, dict[str, list[int]]]:
    """The first seed, and the seeds to play by kind. Raises ValueError."""
    first, count = int(os.environ.get("SEED", "1")), int(os.environ.get("SCHEDULES", "10000"))
    on_database = min(count, int(os.environ.get("DATABASE", count // 20)))
    played: dict[str, list[int]] = {"core": [], "database": []}
    for kind, _, number in (each.partition(":") for each in os.environ.get("SEEDS", "").split()):
        if kind not in played:
            raise ValueError(kind)
        played[kind].append(int(number))
    played["core"] += range(first, first + count - on_database)
    played["database"] += range(first, first + on_database)
    return first, {kind: [*dict.fromkeys(seeds)] for kind, seeds in played.items()}


@dataclass
class _Found:
    """What the schedules so far showed."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def play(
        self, kind: str, seeds: list[int], one: Callable[[int], Played], *, stop_at_once: bool
    ) -> int:
        """How many were played."""
        for number, seed in enumerate(seeds, 1):
            found, what = one(seed)
            self.seen.update(what)
            if found:
                self.wrong[f"{kind}:{seed}"] = found
                if len(self.wrong) <= _SHOWN_MAX:
                    print(f"{kind}, seed {seed}:", *found, sep="\n  ", flush=True)
                if stop_at_once and any(map(about_the_book, found)):
                    return number
        return len(seeds)


def _run(first: int, seeds: dict[str, list[int]], stop_at_once: bool) -> dict[str, object]:
    """All of them; with a guard out the first finding is enough."""
    from tests.simulation import core
    from tests.simulation.hearsay import CONTRACTS
    from tests.simulation.play import Playground

    began, found = time.monotonic(), _Found()
    played = found.play("core", seeds["core"], core.played, stop_at_once=stop_at_once)
    engine = 0
    if seeds["database"] and not (stop_at_once and found.wrong):
        with Playground() as ground:
            engine = found.play(
                "database", seeds["database"], ground.play, stop_at_once=stop_at_once
            )
    words = [*chain.from_iterable(found.wrong.values())]
    return {
        "schedules": played + engine,
        "core": played,
        "database": engine,
        "contracts": len(CONTRACTS),
        "violations": len(found.wrong),
        "unrested": sum(" in the end" in each or each.startswith("after ") for each in words),
        "failing_seeds": [*found.wrong][-20:],
        "found": ([*filter(about_the_book, words)] or words)[-_SHOWN_MAX:],
        "seen": dict(sorted(found.seen.items())),
        "seed": first,
        "seconds": round(time.monotonic() - began, 1),
        "ok": not found.wrong,
    }


def _told(found: dict[str, object], broken: str) -> int:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    for name, value in found.items():
        print(f"  {name}: {value}")
    if os.environ.get("JSON"):
        print(json.dumps(found | {"broken": broken, "commit": commit}))
    if broken:
        return 3 if found["ok"] else 1
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
