"""`MUTATIONS=1 make simulate`: rule after rule out of a copy of the work tree, until it is noticed.

Only what the schedules' checkers say counts: the provider's book, or book against ledger, with the
seed and the step. A rule that another guard stands behind is shown twice: alone, with what caught
it, and again without that guard. What no book can show is held by a test, which then must fail.

SCHEDULES (10000 on paper, a fiftieth of them on the database) are tried for each, from SEED (1);
RULES="15 16" tries the switches of these only, ONLY="one-key weak-keys" those, EVERY=n each n-th,
beginning with the SEED-th: n such samples in a row are the whole. At last the seeds that noticed something are played on the tree as it is, where they must find
nothing. JSON=1 makes the last line one JSON object; ends with 1 when a switch was missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.red import OF_THE_DATABASE, Edit, Lane, lanes, on_lanes, outcomes, trouble, without
from tests.simulation import about_the_book
from tests.simulation.switches import Switch, on_paper, table

_SECONDS_MAX: Final = 1800
_ON_DATABASE: Final = 50  # one in so many
_ALONE: Final = 10  # a part of those, where another guard is expected to hold


@dataclass(frozen=True)
class Shown:
    """What one trial came to: `kind` is `simulation`, `directed`, `masked` or "" (unnoticed)."""

    kind: str
    by: str
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tried:
    """One switch, shown once or twice."""

    switch: Switch
    shown: tuple[Shown, ...]
    seconds: float

    @property
    def noticed(self) -> bool:
        return self.shown[-1].kind in ("simulation", "directed")

    def lines(self) -> list[str]:
        name = f"rule {self.switch.rule:02} {self.switch.name}"
        first = f"{'red  ' if self.shown[0].kind else 'green'} {name}: {self.shown[0].by}"
        if len(self.shown) == 1:
            return [f"{first} ({self.seconds:.0f} s)"]
        both = "; ".join(each.breaks for each in self.switch.behind)
        word = "red  " if self.noticed else "green"
        return [first, f"{word} {name}, and {both}: {self.shown[1].by} ({self.seconds:.0f} s)"]


def _tried(switch: Switch, lane: Lane) -> Tried:
    began = time.monotonic()
    try:
        shown = _shown(switch, lane)
    except (RuntimeError, EOFError, subprocess.TimeoutExpired) as error:
        shown = [Shown("", f"its run did not end as one does: {error}")]
    tried = Tried(switch, tuple(shown), time.monotonic() - began)
    print(*tried.lines(), sep="\n", flush=True)
    return tried


def _shown(switch: Switch, lane: Lane) -> list[Shown]:
    """Once, or twice where another guard stands behind it; raises what `_played` raises."""
    if switch.held_by:
        return [_directed(switch, lane)]
    if not switch.behind:
        return [_simulated(switch.off, lane, switch.seeds)]
    alone = _simulated(switch.off, lane, switch.seeds, part=_ALONE)
    names = " and ".join(f"*{each.breaks}*" for each in switch.behind)
    masked = Shown("masked", f"caught by what {names} takes out: {alone.by}")
    both = _simulated(switch.off + switch.behind, lane, switch.seeds)
    return [alone if alone.kind else masked, _not_by_the_other(switch, both, lane)]


def _not_by_the_other(switch: Switch, both: Shown, lane: Lane) -> Shown:
    """What both out came to, unless the guard behind it alone comes to as much."""
    for seed in both.seeds:
        kind = seed.partition(":")[0]
        with without(lane, *switch.behind):
            found = _played(lane, kind, 0, both.seeds, stays=False)["found"]
        if words := [*filter(about_the_book, found)]:
            return Shown("", f"{seed} finds as much with the guard behind it out: {words[0][:150]}")
    return both


def _directed(switch: Switch, lane: Lane) -> Shown:
    """The tests that hold it, on the tree without it."""
    fresh = any(map(_of_the_database, switch.off))
    with without(lane, *switch.off):
        found, _ = outcomes(lane, switch.tests, fresh=fresh)
    names = [name.rpartition("::")[2] for name, word in found.items() if word == "failed"]
    held = found and len(names) == len(found)
    return Shown("directed" if held else "", f"{', '.join(names)} [{switch.held_by}]")


def _simulated(out: tuple[Edit, ...], lane: Lane, seeds: Sequence[str], *, part: int = 1) -> Shown:
    count = int(os.environ.get("SCHEDULES", "10000"))
    runs = [("database", max(1, count // _ON_DATABASE // part))]
    if on_paper(out):
        runs.insert(0, ("core", count))
    caught: list[str] = []
    with without(lane, *out):
        for kind, tries in runs:
            said = _played(lane, kind, tries, seeds, stays=not any(map(_of_the_database, out)))
            words = [each for each in said["found"] if about_the_book(each)]
            caught += [each for each in said["found"] if not about_the_book(each)]
            if words:
                seed = said["failing_seeds"][-1]
                return Shown("simulation", f"{seed}, {words[0][:150]}", (seed,))
    return Shown("", f"nothing in {' and '.join(f'{n} {kind}' for kind, n in runs)}; {caught[:1]}")


def _of_the_database(edit: Edit) -> bool:
    return edit.file in OF_THE_DATABASE


def _played(
    lane: Lane, kind: str, tries: int, seeds: Sequence[str], *, stays: bool = True
) -> dict[str, Any]:
    """The last line of a run in this tree that stops at the first finding about the book.

    `stays`: the lane's own database will do, since nothing of what it was made from is out. Raises
    RuntimeError when it says nothing, and TimeoutExpired.
    """
    wanted = {
        "SCHEDULES": str(tries),
        "DATABASE": str(tries if kind == "database" else 0),
        "SEEDS": " ".join(each for each in seeds if each.startswith(kind)),
        "KEEP_DATABASE": "1" if stays else "",
    }
    ran = lane.nursery.run(
        "tests.simulation",
        more=wanted | {"JSON": "1", "FIRST": "1", "MUTATIONS": ""},
        seconds=_SECONDS_MAX,
    )
    lines = ran.stdout.strip().splitlines()
    if ran.returncode not in (0, 1) or not lines or not lines[-1].startswith("{"):
        raise RuntimeError(f"the simulation did not run: {ran.stdout[-500:]}{ran.stderr[-1500:]}")
    said: dict[str, Any] = json.loads(lines[-1])
    return said


def _whole(of: tuple[str, list[str]], lane: Lane) -> list[str]:
    """Findings of these seeds on the tree as it is."""
    kind, seeds = of
    found: list[str] = _played(lane, kind, 0, seeds)["found"]
    return found


def main() -> int:
    switches = _asked()
    wrong = {why for each in switches for edit in each.off + each.behind if (why := trouble(edit))}
    if wrong:
        print("These edits do not fit the tree:", *sorted(wrong), sep="\n  ")
        return 2
    print(f"To be taken out: {', '.join(each.name for each in switches)}", flush=True)
    with lanes() as made:
        tried = on_lanes(made, _tried, switches)
        seeds = {seed for one in tried for shown in one.shown for seed in shown.seeds}
        played = [
            (kind, sorted(each for each in seeds if each.startswith(kind)))
            for kind in ("core", "database")
        ]
        unedited = [words for found in on_lanes(made, _whole, played) for words in found]
    if unedited:
        print("On the tree as it is the same seeds find:", *unedited, sep="\n  ")
    return _told(tried, unedited)


def _asked() -> list[Switch]:
    """Those that this run is to try."""
    rules, names = os.environ.get("RULES", "").split(), os.environ.get("ONLY", "").split()
    chosen = [
        each
        for each in table()
        if (not rules or str(each.rule) in rules) and (not names or each.name in names)
    ]
    every = int(os.environ.get("EVERY", "1"))
    return chosen[int(os.environ.get("SEED", "1")) % every :: every]


def _told(tried: list[Tried], unedited: list[str]) -> int:
    missed = [each.switch.name for each in tried if not each.noticed]
    ok = not missed and not unedited
    print(*_table(tried), sep="\n")
    kinds = Counter(each.shown[-1].kind or "missed" for each in tried)
    rules = {each.switch.rule for each in tried}
    masked = sum(each.shown[0].kind == "masked" for each in tried)
    print(f"{len(tried)} switches of {len(rules)} rules: {dict(kinds)}; {masked} masked when alone")
    if os.environ.get("JSON"):
        mutations = [
            {
                "rule": each.switch.rule,
                "switch": each.switch.name,
                "noticed_by": each.shown[-1].by,
                "kind": each.shown[-1].kind,
                "alone": each.shown[0].by if len(each.shown) > 1 else "",
                "seconds": round(each.seconds, 1),
            }
            for each in tried
        ]
        told = {"mutations": mutations, "count": len(tried), "missed": missed, "ok": ok}
        print(json.dumps(told))
    return 0 if ok else 1


def _table(tried: list[Tried]) -> list[str]:
    """Rule, switch, and who noticed it, in the order of switches.toml."""
    return [
        f"| {each.switch.rule:2} | {each.switch.name} | {each.shown[-1].kind or 'MISSED'}"
        f"{', alone masked' if each.shown[0].kind == 'masked' else ''} | {each.shown[-1].by[:90]} |"
        for each in tried
    ]
