"""`MUTATIONS=1 make simulate`: rule after rule out of a copy of the work tree, until a checker notices.

Only what the schedules' checkers say counts: the provider's book, or book against ledger. A rule
that another one stands behind is listed with what caught it, and tried again without that, too.
SCHEDULES (10000, a twentieth of them on the database) are tried for each, from SEED (1). The last
line is JSON; ends with 1 when a switch was noticed by nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from tests.red import Edit, Lane, edits, lanes, on_lanes, trouble, without

_SECONDS_MAX = 900


@dataclass(frozen=True)
class Switch:
    """Guards that are off together, by what red.toml says of their absence."""

    off: tuple[str, ...]
    # What stands behind it, where it alone may go unnoticed.
    behind: str = ""


SWITCHES = (
    Switch(("the claim is not committed before the call",)),
    Switch(("the money is not looked at when it is taken",)),
    Switch(("every attempt has a key of its own",)),
    Switch(("nobody looks at the clock before the first byte",)),
    Switch(("a lost answer is read as a refusal",)),
    Switch(
        ("a success need not be what we asked for",), "what the sandbox answers is always right"
    ),
    Switch(("*already refunded* counts as a refusal",)),
    Switch(("a refusal ends the operation whatever the other attempts did",)),
    Switch(("a later *not sent* clears an earlier ambiguity",)),
    Switch(("a lease that ends puts the operation back in the queue",)),
    Switch(("only the last attempt is asked",)),
    Switch(("the answer of an overtaken attempt decides",)),
    Switch(("any 401, 403 or 429 is *turned away*",)),
    Switch(("a hop's own page is the provider's envelope",)),
    Switch(("an absence makes a refused operation sendable again",)),
    Switch(("the second send takes the money again",)),
    Switch(("what is withdrawn keeps its money",)),
    Switch(("a resend does not ask how old the key is",)),
    Switch(("an absence is believed whenever it was asked for",)),
)


@dataclass(frozen=True)
class Noticed:
    """`seed` is the first whose checkers found something, in `words`; None: none of them did."""

    switch: Switch
    seed: str | None
    words: str
    schedules: int
    seconds: float

    def line(self) -> str:
        name = " + ".join(self.switch.off)
        if self.seed is None:
            behind = f", {self.switch.behind}" if self.switch.behind else ""
            return f"green {name}: nothing in {self.schedules} schedules{behind}"
        return f"red   {name}: seed {self.seed}: {self.words[:110]} ({self.seconds:.0f} s)"


def _tried(of: tuple[Switch, list[Edit]], lane: Lane) -> Noticed:
    switch, off = of
    began = time.monotonic()
    with without(lane, *off):
        said = _simulated(lane)
    found = Noticed(
        switch=switch,
        seed=said["failing_seeds"][0] if said["failing_seeds"] else None,
        words="; ".join(said["found"]),
        schedules=said["schedules"],
        seconds=time.monotonic() - began,
    )
    print(found.line(), flush=True)
    return found


def _simulated(lane: Lane) -> dict[str, Any]:
    """The last line of a run in this tree that stops at the first finding."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation"],
        cwd=lane.tree,
        env=lane.environment | {"JSON": "1", "FIRST": "1", "MUTATIONS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS_MAX,
    )
    lines = ran.stdout.strip().splitlines()
    if ran.returncode not in (0, 1) or not lines or not lines[-1].startswith("{"):
        raise RuntimeError(f"the simulation did not run: {ran.stdout[-500:]}{ran.stderr[-1500:]}")
    said: dict[str, Any] = json.loads(lines[-1])
    return said


def main() -> int:
    known = {edit.breaks: edit for edit in edits()}
    wrong = [name for switch in SWITCHES for name in switch.off if name not in known]
    wrong += [why for each in known.values() if (why := trouble(each))]
    if wrong:
        print("These do not fit red.toml:", *wrong, sep="\n  ")
        return 2
    with lanes() as made:
        found = on_lanes(
            made, _tried, [(each, [known[name] for name in each.off]) for each in SWITCHES]
        )
    green = [each for each in found if each.seed is None]
    unexplained = [" + ".join(each.switch.off) for each in green if not each.switch.behind]
    told = {"red": len(found) - len(green), "green": len(green), "unnoticed": unexplained}
    print(json.dumps(told | {"ok": not unexplained}))
    return 1 if unexplained else 0
