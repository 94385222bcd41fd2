"""`REPLAY=1 make model`: guard after guard out of a copy of the engine, and each replay must fail.

Each trace names the guards (tests/red.toml) without which its replay must end badly: one by itself,
or several that stand behind each other and go out together. One that stays harmless ends it with 3.
ONLY= takes the guards in whose name this stands.
"""

from __future__ import annotations

import json
import os

from tests.model.replay.traces import edits_of_traces, replay_of
from tests.red import (
    OF_THE_DATABASE,
    Edit,
    Lane,
    edits,
    lanes,
    on_lanes,
    outcomes,
    trouble,
    without,
)


def _tried(of: tuple[tuple[Edit, ...], list[str]], lane: Lane) -> list[str]:
    """The traces that stay harmless without these guards."""
    off, names = of
    with without(lane, *off):
        fresh = any(each.file in OF_THE_DATABASE for each in off)
        found, said = outcomes(lane, tuple(map(replay_of, names)), fresh=fresh)
    bad = {
        name
        for test, word in found.items()
        if word != "passed"
        for name in names
        if f"[{name}]" in test
    }
    without_them = " and ".join(each.name for each in off)
    print(f"{len(bad)} of {len(names)} end badly without {without_them}", flush=True)
    green = [name for name in names if name not in bad]
    print(*(f"  NOTHING NOTICED {name}" for name in green), sep="\n", end="\n" if green else "")
    if len(found) != len(names):
        print(said)
    return [f"{name}: {without_them}" for name in green]


def main() -> int:
    """Prints each set of guards with its traces; the last line is JSON."""
    only = os.environ.get("ONLY", "")
    known = {edit.breaks: edit for edit in edits()}
    wanted = {of: traces for of, traces in edits_of_traces().items() if only in " ".join(of)}
    named = {name for of in wanted for name in of}
    wrong = sorted(named - known.keys())
    wrong += [why for name in sorted(named & known.keys()) if (why := trouble(known[name]))]
    if wrong or not wanted:
        print("These do not fit red.toml:", *wrong, sep="\n  ")
        return 2
    asked = [(tuple(known[name] for name in of), traces) for of, traces in wanted.items()]
    with lanes() as made:
        green = [each for some in on_lanes(made, _tried, asked) for each in some]
    traces = len({name for some in wanted.values() for name in some})
    told = {"guards": len(named), "sets": len(wanted), "traces": traces, "unnoticed": green}
    print(json.dumps(told | {"ok": not green}))
    return 3 if green else 0
