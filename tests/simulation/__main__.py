"""`make simulate`: many schedules, each by its seed, and what is wrong after each.

    SCHEDULES=10000 SEED=1 python -m tests.simulation

Nineteen in twenty play what decides alone, under contracts of every kind (core.py); the rest, or
DATABASE= of them, the real engine on a real database (world.py). JSON=1 makes the last line one
JSON object. FIRST=1 ends with the first finding. BREAK=NAME takes one guard out (see broken.py);
the run must then end with 1. MUTATIONS=1 takes the rules of mutations.py out instead, one after
the other, each in a copy of the work tree. Ends with 0 when no checker found anything, 1 when one
did, 2 for unusable input, 3 when a guard was taken out and nothing noticed.
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

_SHOWN_MAX = 3
Played = tuple[list[str], Counter[str]]


def main() -> int:
    usual = {"SCHEDULES": "10000", "SEED": "1"}
    wanted = {name: os.environ.get(name, value) for name, value in usual.items()}
    wanted["DATABASE"] = os.environ.get("DATABASE", "0")
    if not all(each.isdecimal() for each in wanted.values()):
        print("SCHEDULES, SEED and DATABASE are whole numbers.")
        return 2
    if os.environ.get("MUTATIONS"):
        from tests.simulation import mutations

        return mutations.main()
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
    seed, count = int(wanted["SEED"]), int(wanted["SCHEDULES"])
    on_database = min(count, int(wanted["DATABASE"]) or max(1, count // 20))
    first_only = bool(broken or os.environ.get("FIRST"))
    return _told(_run(seed, count - on_database, on_database, first_only), broken)


@dataclass
class _Found:
    """What the schedules so far showed."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def play(
        self, kind: str, seeds: range, one: Callable[[int], Played], *, stop_at_once: bool
    ) -> int:
        """How many were played."""
        for number, seed in enumerate(seeds, 1):
            found, what = one(seed)
            self.seen.update(what)
            if found:
                self.wrong[f"{kind} {seed}"] = found
                if len(self.wrong) <= _SHOWN_MAX:
                    print(f"{kind}, seed {seed}:", *found, sep="\n  ", flush=True)
                if stop_at_once:
                    return number
        return len(seeds)


def _run(first: int, in_core: int, on_database: int, stop_at_once: bool) -> dict[str, object]:
    """Seeds from `first` on, for both kinds; with a guard out the first finding is enough."""
    from tests.simulation import core
    from tests.simulation.hearsay import CONTRACTS
    from tests.simulation.play import Playground

    began, found = time.monotonic(), _Found()
    played = found.play(
        "core", range(first, first + in_core), core.played, stop_at_once=stop_at_once
    )
    engine = 0
    if on_database and not (stop_at_once and found.wrong):
        with Playground() as ground:
            engine = found.play(
                "database",
                range(first, first + on_database),
                ground.play,
                stop_at_once=stop_at_once,
            )
    words = [*chain.from_iterable(found.wrong.values())]
    return {
        "schedules": played + engine,
        "core": played,
        "database": engine,
        "contracts": len(CONTRACTS),
        "violations": len(found.wrong),
        "unrested": sum(" in the end" in each or each.startswith("after ") for each in words),
        "failing_seeds": [*found.wrong][:20],
        "found": words[:_SHOWN_MAX],
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
