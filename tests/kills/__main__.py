"""`make kills`: senders are killed when the provider has paid and nobody has heard, 200 times.

Real processes on real sockets. Ten approved refunds are in flight; the provider's book has executed
all ten and holds their answers; then the money worker's whole process group gets SIGKILL and is
started again. First at an account that ignores keys, where a second request is a second refund,
then at one that honours them. A second sender is handed each of them once more, as a broker
delivers again what a dead worker held. At the end faults stop, rest is awaited, and the figures are
read from the provider's book and the database; an auditor that imports nothing of ours counts, too.

OPERATIONS (200) for each account, SEED (1), JSON=1 for a last line for machines, BREAK=requeue for
workers that take a dead sender's refund for unsent and send it again, as engines do that promise
"at least once". Ends with 0 when all is well, 1 otherwise, 2 for unusable input, 3 when the
switched-off guard was not noticed by doubles.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from tests import ended
from tests.audit_book import FAULTS, audit, is_clean
from tests.kills.figures import Figures, read, told
from tests.kills.killing import IN_FLIGHT, House, Killing

# Whether the account honours keys.
ACCOUNTS = {"plain-nokeys": False, "plain-main": True}
BREAKS = {"": "", "requeue": "lease-requeue"}
NOT_SENT = {"gone"}


def main() -> int:
    given = {
        name: os.environ.get(name, usual) for name, usual in (("OPERATIONS", "200"), ("SEED", "1"))
    }
    broken = os.environ.get("BREAK", "")
    if not all(each.isdecimal() for each in given.values()) or int(given["OPERATIONS"]) < IN_FLIGHT:
        print(f"OPERATIONS ({IN_FLIGHT} or more) and SEED are whole numbers.")
        return 2
    if broken not in BREAKS:
        print("BREAK is: requeue.")
        return 2
    operations, seed = (int(each) for each in given.values())
    began = time.monotonic()
    print(f"Starting an installation of its own, OPERATIONS={operations}, SEED={seed}.", flush=True)
    with House(broken=BREAKS[broken]) as here:
        killing = Killing(here, seed)
        for account in ACCOUNTS:
            killing.strike(account, operations)
        killing.rest()
        killing.end()
        book = str(here.provider.book_file)
        found = {name: read(book, here.database, name, killing.killed[name]) for name in ACCOUNTS}
        counts = audit(book, here.database)
    seconds = round(time.monotonic() - began, 1)
    ok = _tell(killing, found, counts, operations)
    print(f"{killing.kills} kills with up to {IN_FLIGHT} in flight; {seconds} s in all.")
    if os.environ.get("JSON"):
        line: dict[str, Any] = {
            "operations": operations,
            "in_flight": IN_FLIGHT,
            "kills": killing.kills,
        }
        line |= {"seed": seed, "broken": broken, "seconds": seconds, "ok": ok}
        print(json.dumps(_counted(found, counts) | line))
    if broken:
        doubles = sum(each.doubles for each in found.values())
        noticed = "noticed" if doubles else "NOT NOTICED"
        # What machines read stays the last line.
        print(f"BREAK={broken}: {noticed}: {doubles} doubles.", file=sys.stderr)
        return 1 if doubles else 3
    return 0 if ok else 1


def _counted(found: dict[str, Figures], counts: dict[str, Any]) -> dict[str, Any]:
    """Every figure, for machines."""
    accounts = {name: asdict(each) for name, each in found.items()}
    audited = {name: count for name, count in counts.items() if name != "found"}
    return {"accounts": accounts, "audit": audited}


def _tell(
    killing: Killing, found: dict[str, Figures], counts: dict[str, Any], operations: int
) -> bool:
    """Say what was counted; whether all of it is as it must be."""
    must: dict[str, bool] = {}
    for name, each in found.items():
        sentences = told(each, operations, keys_honoured=ACCOUNTS[name])
        must |= {f"{name}: {said}": holds for said, holds in sentences.items()}
        said = killing.again[name]
        must[f"{name}: a sender that is handed one again says {', '.join(sorted(said))}"] = (
            said == NOT_SENT
        )
    shown_counts = {name: counts[name] for name in (*FAULTS, "unresolved")}
    must[f"the auditor's counts {shown_counts}"] = is_clean(counts) and not counts["unresolved"]
    for said_now, holds in must.items():
        print(f"  {'ok' if holds else 'NOT OK'}: {said_now}")
    for name, sentences_found in counts["found"].items():
        print(f"  {name}: {'; '.join(sentences_found[:5])}")
    return all(must.values())


if __name__ == "__main__":
    ended.run(main)
