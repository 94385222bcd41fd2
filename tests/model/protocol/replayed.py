"""`REPLAY=1 make model`: guard after guard out of a copy of the engine, until its replays fail.

Each trace names the guards (tests/red.toml) without which its replay must end badly. A guard whose
traces all stay harmless is one that the replays do not watch: ends with 3. Traces that another guard
stands behind are listed. ONLY= takes the guards in whose name this stands.
"""

from __future__ import annotations

import json
import os

from tests.model.replay.traces import edits_of_traces, replay_of
from tests.red import Edit, Lane, edits, lanes, on_lanes, outcomes, trouble, without


def _tried(of: tuple[Edit, list[str]], lane: Lane) -> tuple[Edit, dict[str, bool]]:
    """Which of these traces end badly without this guard."""
    edit, names = of
    with without(lane, edit):
        found, said = outcomes(lane, tuple(replay_of(name) for name in names))
    bad = {
        name
        for test, word in found.items()
        if word != "passed"
        for name in names
        if f"[{name}]" in test
    }
    print(f"{'red  ' if bad else 'green'} {edit.name}: {len(bad)} of {len(names)}", flush=True)
    for name in names:
        print(f"  {'red  ' if name in bad else 'green'} {name}", flush=True)
    if len(found) != len(names):
        print(said)
    return edit, {name: name in bad for name in names}


def main() -> int:
    """Prints each guard with its traces; the last line is JSON."""
    only = os.environ.get("ONLY", "")
    known = {edit.breaks: edit for edit in edits()}
    wanted = {name: traces for name, traces in edits_of_traces().items() if only in name}
    wrong = [name for name in wanted if name not in known]
    wrong += [why for name in wanted if name in known and (why := trouble(known[name]))]
    if wrong or not wanted:
        print("These do not fit red.toml:", *wrong, sep="\n  ")
        return 2
    with lanes() as made:
        found = on_lanes(made, _tried, [(known[name], traces) for name, traces in wanted.items()])
    green = [edit.breaks for edit, traces in found if not any(traces.values())]
    red = sum(any(traces.values()) for _, traces in found)
    shown = sum(sum(traces.values()) for _, traces in found)
    print(json.dumps({"guards": red, "traces": shown, "unnoticed": green, "ok": not green}))
    return 3 if green else 0
