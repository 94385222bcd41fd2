"""`make simulate`: many schedules of the real engine on a real database, each by its seed.

    SCHEDULES=500 SEED=1 python -m tests.simulation

JSON=1 makes the last line one JSON object. FIRST=1 ends with the first finding. BREAK=NAME takes
one guard out (see broken.py); the run must then end with 1. MUTATIONS=1 takes the rules of
mutations.py out instead, one after the other, each in a copy of the work tree. Ends with 0 when no checker found anything, 1 when one did, 2 for
unusable input, 3 when a guard was taken out and nothing noticed.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from itertools import chain

import tests.environment as environment

_SHOWN_MAX = 3


def main() -> int:
    wanted = {
        "SCHEDULES": os.environ.get("SCHEDULES", "500"),
        "SEED": os.environ.get("SEED", "1"),
    }
    if not all(each.isdecimal() for each in wanted.values()):
        print("SCHEDULES and SEED are whole numbers.")
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
    first_only = bool(broken or os.environ.get("FIRST"))
    return _told(_run(int(wanted["SEED"]), int(wanted["SCHEDULES"]), first_only), broken)


def _run(first: int, count: int, stop_at_once: bool) -> dict[str, object]:
    """Seeds `first` to `first + count - 1`; with a guard out the first finding is enough."""
    from tests.simulation.play import Playground

    began, wrong, seen = time.monotonic(), {}, Counter[str]()
    played = 0
    with Playground() as ground:
        for seed in range(first, first + count):
            found, what = ground.play(seed)
            played += 1
            seen.update(what)
            if found:
                wrong[seed] = found
                if len(wrong) <= _SHOWN_MAX:
                    print(f"seed {seed}:", *found, sep="\n  ", flush=True)
                if stop_at_once:
                    break
    return {
        "schedules": played,
        "wrong": len(wrong),
        "seeds": [*wrong][:20],
        "found": [*chain.from_iterable(wrong.values())][:_SHOWN_MAX],
        "seen": dict(sorted(seen.items())),
        "seed": first,
        "seconds": round(time.monotonic() - began, 1),
        "ok": not wrong,
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
