"""`make model`: the protocol itself, every state of it; each rule left out must hurt.

    python -m tests.model.protocol

Prints how many states were visited, and for each rule that is left out the length of the shortest
way to harm; then every trace that is replayed on the engine, and its test. JSON=1 makes the last
line one JSON object. TRACES=1 prints the traces and their tests alone. REPLAY=1 takes guards out of the
engine instead, and sees those replays fail (see replayed.py). Ends with 0 when all is as it should be, 1 when a rule in place does not keep
something from harm or a line of the table of states was never taken, 2 for unusable input, 3 when
a rule was left out and nothing noticed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from refunds.domain.states import RULES
from tests.model.protocol.explore import Explored, explore
from tests.model.protocol.rules import Run, in_place, removals
from tests.model.replay.traces import replays


def explored(run: Run) -> tuple[Run, Explored, float]:
    began = time.process_time()
    return run, explore(run.model), time.process_time() - began


def line(run: Run, found: Explored, seconds: float) -> str:
    """One exploration in words."""
    about = f"{run.part}, {run.name}: {found.states} states, {seconds:.1f} s"
    if run.off:
        harm = f"{len(found.way)} steps to: {found.fault}" if found.fault else "NOTHING NOTICED"
        return f"without {run.off}: {harm} ({about})"
    if found.fault:
        return f"WRONG {found.fault}: {' > '.join(found.way)} ({about})"
    return f"{'STUCK after ' + ' > '.join(found.stuck) if found.stuck else 'holds'} ({about})"


def never_taken(happened: frozenset[str]) -> list[str]:
    """Events of the product's table of states that no exploration came by."""
    return [rule.event for rule in RULES if rule.event not in happened]


def main() -> int:
    if os.environ.get("TRACES"):
        print(*(f"{name} -> {test}" for name, test in replays()), sep="\n")
        return 0
    if os.environ.get("REPLAY"):
        from tests.model.protocol import replayed

        return replayed.main()
    workers = os.environ.get("WORKERS", "2")
    if not workers.isdecimal() or workers == "0":
        print("WORKERS is a whole number above 0.")
        return 2
    total: Counter[str] = Counter()
    wrong, unnoticed, happened = [], [], frozenset[str]()
    with ProcessPoolExecutor(int(workers)) as pool:
        for run, found, seconds in pool.map(explored, [*in_place(), *removals()]):
            said = line(run, found, seconds)
            print(said, flush=True)
            total["states"] += found.states
            total["removals" if run.off else "worlds"] += 1
            if run.off:
                unnoticed += [] if found.fault else [said]
            else:
                happened |= found.happened
                wrong += [said] if found.fault or found.stuck else []
    wrong += [f"no exploration came by {event}" for event in never_taken(happened)]
    traces = replays()
    print(*(f"{name} -> {test}" for name, test in traces), sep="\n")
    print(*wrong, *unnoticed, sep="\n", end="\n" if wrong or unnoticed else "")
    told = {**total, "events": len(RULES), "traces": len(traces), "wrong": wrong}
    told |= {"unnoticed": unnoticed, "ok": not wrong and not unnoticed}
    print(json.dumps(told) if os.environ.get("JSON") else f"{dict(total)}, {len(traces)} traces")
    return 1 if wrong else 3 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
