"""Changes one line of what decides at a time; the unit and model tests must notice each change.

`python -m tests.mutants`, or `make mutants`; with names of modules for some of them, `EVERY=n` for
each nth mutant. Last line of stdout: {"mutants": n, "killed": n, "listed": n, "survived": [...],
"ok": bool}; exit 1 when a mutant survives that `accepted.toml` does not list with a reason, or when
it lists one that a whole run killed or did not meet.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from tests.mutants.changes import mutants
from tests.mutants.trial import ROOT, killed

MODULES = (
    *("reconciliation.decide", "reconciliation.afterwards", "reconciliation.proof"),
    *("reconciliation.patience", "reconciliation.lateness", "reconciliation.matching"),
    *("reconciliation.known", "refunds.domain.contract", "refunds.domain.outcome"),
)


def main(wanted: list[str]) -> int:
    accepted = tomllib.loads((Path(__file__).parent / "accepted.toml").read_text())["because"]
    every = int(os.environ.get("EVERY", "1"))
    count, dead, listed, survived = 0, 0, [], []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for module in wanted or MODULES:
            source = (ROOT / (module.replace(".", "/") + ".py")).read_text()
            if killed(module, ast.unparse(ast.parse(source)), Path(scratch)):
                print(f"the tests fail without any change of {module}", file=sys.stderr)
                return 1
            for number, mutant in enumerate(mutants(source)):
                if number % every:
                    continue
                count += 1
                name = f"{module}: {mutant.name}"
                if killed(module, mutant.text, Path(scratch)):
                    dead += 1
                elif name in accepted:
                    listed.append(name)
                else:
                    survived.append(name)
                    print(f"survived: line {mutant.line} of {name}", flush=True)
            print(f"{module}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    stale = [] if wanted or every > 1 else sorted(set(accepted) - set(listed))
    for name in stale:
        print(f"listed, and killed or gone: {name}")
    ok = not survived and not stale
    figures = {"mutants": count, "killed": dead, "listed": len(listed), "survived": survived}
    print(json.dumps({**figures, "ok": ok}))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
