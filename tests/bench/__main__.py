"""`make bench`: what one refund costs, and whether it costs the same when there are many.

Servers of its own with the usual durability, a provider that answers after 20 ms, the product's own
workers. What the figures need is read from the server first: commits that are not kept, or a
database that is not as the migrations make it, are refused.

SIZE (10000): operations of the large database, beside the small one with a tenth of it at most
10,000; 1000000 for the whole comparison. ROUNDS (3), OPS (300) a burst, RATE (50) a second for
RATED (200) operations, REPEATS (20) of each page. APPROVAL=policy or lead. JSON=1 for a last line
for machines. BREAK=fsync or index: a server or a database that must be refused.
Ends with 0 when every must is met, 1 otherwise, 2 for unusable input, 3 when a breakage was not
noticed.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from tests import ended
from tests.bench import machine, report, server
from tests.bench.engine import Engine, Hand
from tests.bench.figures import Figure, failed, line
from tests.bench.ground import SCHEMA
from tests.bench.place import PATTERN, Place

BREAKS = ("", "fsync", "index")
USUAL = {
    "SIZE": 10_000,
    "ROUNDS": 3,
    "OPS": 300,
    "RATE": 50,
    "RATED": 200,
    "REPEATS": 20,
    "LATENCY_MS": 20,
}
SMALL_MAX = 10_000
COUNTED = 100
NOTICES = 100


class NotMeasured(RuntimeError):
    """What stands there is not what may be measured; the text says why."""


def main() -> int:
    given = {name: os.environ.get(name, str(usual)) for name, usual in USUAL.items()}
    broken, approval = os.environ.get("BREAK", ""), os.environ.get("APPROVAL", "policy")
    if not all(each.isdecimal() and int(each) > 0 for each in given.values()):
        print(f"{', '.join(USUAL)} are whole numbers, 1 or more.")
        return 2
    if int(given["SIZE"]) < 10_000:
        print("SIZE is 10000 or more: a tenth of it still fills a page of each list.")
        return 2
    if broken not in BREAKS or approval not in ("policy", "lead"):
        print("BREAK is fsync or index, APPROVAL is policy or lead.")
        return 2
    wanted = {name.lower(): int(each) for name, each in given.items()}
    began = time.monotonic()
    with Place(latency_ms=wanted["latency_ms"], approval=approval) as place:
        try:
            found = _measured(place, wanted, approval == "lead", broken)
        except NotMeasured as why:
            print(f"Not measured: {why}")
            return 1
    if broken:
        print(f"BREAK={broken}: NOT NOTICED")
        return 3
    return _tell(found, round(time.monotonic() - began, 1))


def _measured(place: Place, wanted: dict[str, int], by_lead: bool, broken: str) -> dict[str, Any]:
    print(f"Servers of its own under {place.run_dir}; {wanted}", flush=True)
    if broken == "fsync":
        place.tell_server("fsync", "off")
    with place.server() as database:
        kept = server.settings(database)
    unsafe = server.unsafe(kept)
    if unsafe:
        raise NotMeasured(f"the server does not keep what it commits: {', '.join(unsafe)}")
    _make_pattern(place)
    a_round = COUNTED + wanted["ops"] + wanted["rated"]
    orders = a_round * wanted["rounds"]
    sizes = {"small": min(SMALL_MAX, wanted["size"] // 10), "large": wanted["size"]}
    for name in sizes:
        place.copy(name)
        place.ground(name).write_files()
    engines = {name: Engine(place, name, orders, by_lead) for name in sizes}
    try:
        for name, engine in engines.items():
            engine.hand.do("fill", orders=orders, finished=sizes[name])
            if broken == "index":
                with place.server(name) as database:
                    database.execute(f"DROP INDEX {SCHEMA}.operation_due")
            _require_catalog(place, name)
            print(f"{name}: {sizes[name]} finished operations", flush=True)
        fdatasync_us = machine.fdatasync_us(place.run_dir)
        worked = [_work(engines, wanted, no) for no in range(wanted["rounds"])]
        looked = [_look(engines, wanted, no) for no in range(wanted["rounds"])]
    finally:
        for engine in engines.values():
            engine.hand.end()
    rounds = [
        {name: one[name] | seen[name] for name in sizes}
        for one, seen in zip(worked, looked, strict=True)
    ]
    others = [each["burst"]["other_cores"] for one in rounds for each in one.values()]
    return {
        "figures": report.figures(rounds, large=sizes["large"]),
        "statements": rounds[0]["small"]["counts"]["statements"],
        "machine": {
            "cores": os.cpu_count(),
            "fdatasync_us": fdatasync_us,
            "other_cores": round(max(others), 2),
        },
        "server": kept,
        "sizes": sizes,
    }


def _make_pattern(place: Place) -> None:
    ground = place.ground(PATTERN)
    ground.write_files()
    ground.make_roles()
    hand = Hand(place, PATTERN)
    hand.do("migrate")
    hand.end()


def _require_catalog(place: Place, name: str) -> None:
    """Raises NotMeasured unless the database is as the migrations made the pattern."""
    with place.server(PATTERN) as pattern, place.server(name) as database:
        odd = server.differences(server.catalog(database), server.catalog(pattern))
    if odd:
        raise NotMeasured(f"{name} is not as the migrations make it: {'; '.join(odd[:5])}")


def _work(engines: dict[str, Engine], wanted: dict[str, int], no: int) -> dict[str, Any]:
    """Each database in turn, so that what the machine does meanwhile strikes both."""
    found: dict[str, Any] = {}
    for name, engine in engines.items():
        with engine.running():
            found[name] = {
                "counts": engine.counts(COUNTED),
                "burst": engine.burst(wanted["ops"]),
                "rate": engine.rate(wanted["rated"], wanted["rate"]),
            }
        burst = found[name]["burst"]
        print(
            f"  round {no + 1}, {name}: {burst['ops_s']:.0f} refunds/s,"
            f" {burst['cpu_s_1000']:.1f} CPU s per 1,000,"
            f" other cores {burst['other_cores']:.1f}",
            flush=True,
        )
    return found


def _look(engines: dict[str, Engine], wanted: dict[str, int], no: int) -> dict[str, Any]:
    """Pages, sweeps and notices, while no worker runs."""
    return {
        name: {
            "pages": engine.hand.do("pages", repeats=wanted["repeats"]),
            "admin": engine.plain_admin(wanted["repeats"]),
            "beside_admin": engine.hand.do("page", name="queue", repeats=wanted["repeats"]),
            "sweeps": engine.hand.do("sweeps", repeats=wanted["repeats"]),
            "notices": engine.hand.do("notices", first=no * NOTICES, count=NOTICES)
            | {"count": NOTICES},
        }
        for name, engine in engines.items()
    }


def _tell(found: dict[str, Any], seconds: float) -> int:
    figures: list[Figure] = found["figures"]
    for each in figures:
        print(f"  {line(each)}")
    print("Dearest statements of a sender (calls, ms, text):")
    for calls, ms, said in found["statements"]:
        print(f"  {calls:6} {ms:10} {' '.join(said.split())[:90]}")
    wrong = failed(figures, found["machine"]["other_cores"])
    print(f"The machine: {found['machine']}; the server: {found['server']}; {seconds} s in all.")
    if wrong:
        print(f"Not met: {', '.join(wrong)}.")
    if os.environ.get("JSON"):
        shown = {"figures": [each.shown() for each in figures], "machine": found["machine"]}
        print(json.dumps(shown | {"sizes": found["sizes"], "seconds": seconds, "ok": not wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    ended.run(main)
