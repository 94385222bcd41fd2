"""The full product of situations: `python -m tests.model.check`, or `make model-check`.

Last line of stdout: {"situations": n, "differences": n, "ok": bool}; exit 1 when not ok.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

from tests.model.restated import expected
from tests.model.situations import CIRCUMSTANCES, decided, in_short, situations

_PARTS = 64
_SHOWN_MAX = 5


def compare(every: int, first: int) -> tuple[int, list[str]]:
    """How many of the situations were compared, each `every`th from `first`, and which differ."""
    compared, differences = 0, []
    for situation in islice(situations(3), first, None, every):
        compared += 1
        wanted, got = expected(situation), in_short(decided(situation))
        if wanted != got:
            differences.append(f"{situation}\n  the rules say {wanted}\n  decide says {got}")
    return compared, differences


def compare_circumstances() -> tuple[int, list[str]]:
    """Every circumstance, for at most one attempt."""
    compared, differences = 0, []
    for situation in situations(1, CIRCUMSTANCES):
        compared += 1
        wanted, got = expected(situation), in_short(decided(situation))
        if wanted != got:
            differences.append(f"{situation}\n  the rules say {wanted}\n  decide says {got}")
    return compared, differences


def main() -> int:
    with ProcessPoolExecutor(max_workers=2) as pool:
        parts = list(pool.map(compare, [_PARTS] * _PARTS, range(_PARTS)))
    parts.append(compare_circumstances())
    differences = [each for _, found in parts for each in found]
    for each in differences[:_SHOWN_MAX]:
        print(each)
    count = sum(compared for compared, _ in parts)
    ok = not differences
    print(json.dumps({"situations": count, "differences": len(differences), "ok": ok}))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
