"""`make outages`: what a machine, a database or a deploy does to a running house, one after another.

Each scenario has an installation of its own, with real web, workers, beat, PostgreSQL, broker and
provider. Refunds go on; the outage comes and ends; the rest is awaited; then an auditor that imports
nothing of ours counts in the provider's book and in the database.

ONLY= names one scenario, SEED (1), STOCK (100000, refunds of the past that are migrated), JSON=1
for a last line for machines. BREAK= takes a guard out of, or does wrong, what the one scenario
that has this name in it needs. Ends with 0 when all is well, 1 otherwise, 2 for unusable input or
a machine that does not give what a scenario needs, 3 when what was broken was not noticed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests import ended
from tests.outages import connections, disk, older, releases, restarts
from tests.outages.asked import Asked
from tests.outages.judged import Verdict

STOCK_MIN = 1000


@dataclass(frozen=True)
class Scenario:
    """`broken_by`: BREAK -> the check that must then fail. `missing` says what the machine lacks."""

    run: Callable[[Asked], Verdict]
    broken_by: dict[str, str]
    missing: Callable[[], str] = str


SCENARIOS = {
    "database-disk-full": Scenario(disk.database_full, {"requeue": "duplicates"}, disk.own_mounts),
    "logs-disk-full": Scenario(disk.logs_full, {"log-first": "unknowns"}, disk.own_mounts),
    "few-connections": Scenario(connections.few, {"wait-forever": "bounded"}),
    "restarts": Scenario(restarts.restarts, {"kill": "unknowns"}),
    "migration": Scenario(releases.migration, {"rewrite": "locks"}, older.missing),
    "older-release": Scenario(releases.beside, {"contract": "stumbles"}, older.missing),
}


def main() -> int:
    given = {
        name: os.environ.get(name) or usual for name, usual in (("SEED", "1"), ("STOCK", "100000"))
    }
    whole = all(each.isascii() and each.isdecimal() for each in given.values())
    if not whole or int(given["STOCK"]) < STOCK_MIN:
        print(f"SEED and STOCK ({STOCK_MIN} or more) are whole numbers.")
        return 2
    only, broken = os.environ.get("ONLY", ""), os.environ.get("BREAK", "")
    if only not in ("", *SCENARIOS):
        print(f"ONLY is one of: {', '.join(SCENARIOS)}.")
        return 2
    breaks = {each: name for name, one in SCENARIOS.items() for each in one.broken_by}
    if broken not in ("", *breaks) or (broken and only not in ("", breaks[broken])):
        print(f"BREAK is one of: {', '.join(f'{each} ({name})' for each, name in breaks.items())}.")
        return 2
    chosen = [breaks[broken]] if broken else [only] if only else [*SCENARIOS]
    asked = Asked(seed=int(given["SEED"]), broken=broken, stock=int(given["STOCK"]))
    return max(_run(name, SCENARIOS[name], asked) for name in chosen)


def _run(name: str, scenario: Scenario, asked: Asked) -> int:
    missing = scenario.missing()
    if missing:
        print(f"{name}: not run, {missing}.")
        return 2
    print(f"{name}, {asked}.", flush=True)
    began = time.monotonic()
    verdict = scenario.run(asked)
    seconds = round(time.monotonic() - began, 1)
    for said, holds in verdict.must.values():
        print(f"  {'ok' if holds else 'NOT OK'}: {said}")
    for kind, sentences in verdict.found.items():
        print(f"  {kind}: {'; '.join(sentences[:5])}")
    print(f"{name}: {'ok' if verdict.ok else 'NOT OK'} after {seconds} s.", flush=True)
    ended_with = 0 if verdict.ok else 1
    if asked.broken:
        check = scenario.broken_by[asked.broken]
        noticed = not verdict.must[check][1]
        ended_with = 1 if noticed else 3
        # What machines read stays the last line.
        said = "noticed" if noticed else "NOT NOTICED"
        print(f"BREAK={asked.broken}: {said} by {check}.", file=sys.stderr)
    if os.environ.get("JSON"):
        line: dict[str, Any] = {"scenario": name, "seed": asked.seed, "broken": asked.broken}
        line |= verdict.figures | {"seconds": seconds, "ok": verdict.ok}
        print(json.dumps(line), flush=True)
    return ended_with


if __name__ == "__main__":
    ended.run(main)
