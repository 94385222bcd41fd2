"""The full product of situations: `python -m tests.model.check`, or `make model-check`.

ATTEMPTS=2 (some minutes on two cores) or 3 (hours). Last line of stdout:
{"situations": n, "differences": n, "ok": bool}; exit 1 when not ok.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from refunds.domain import states
from tests.model.restated import Situation, expected
from tests.model.situations import CIRCUMSTANCES, PROMISES, decided, in_short, situations

_SHOWN_MAX = 5


def differences(compared: Iterable[Situation]) -> tuple[int, list[str]]:
    """How many situations were compared, and those in which decide departs from its rules."""
    count, found = 0, []
    for situation in compared:
        count += 1
        wanted, got = expected(situation), in_short(decided(situation))
        if wanted != got:
            found.append(f"{situation}\n  the rules say {wanted}\n  decide says {got}")
    return count, found


def part(of: tuple[str, int, int]) -> tuple[int, list[str]]:
    """One state under one contract: all histories, and all circumstances of one attempt."""
    state, number, attempts_max = of
    whole = differences(situations(state, PROMISES[number], attempts_max))
    around = differences(situations(state, PROMISES[number], 1, CIRCUMSTANCES[1:]))
    return whole[0] + around[0], whole[1] + around[1]


def main() -> int:
    attempts_max = int(os.environ.get("ATTEMPTS", "2"))
    parts = product(states.STATES, range(len(PROMISES)), [attempts_max])
    count, found = 0, []
    with ProcessPoolExecutor(max_workers=2) as pool:
        for compared, differing in pool.map(part, parts):
            count += compared
            found += differing
    for each in found[:_SHOWN_MAX]:
        print(each)
    print(json.dumps({"situations": count, "differences": len(found), "ok": not found}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
