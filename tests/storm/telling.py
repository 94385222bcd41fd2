"""What the run says, to people and to machines, and the number it ends with."""

from __future__ import annotations

import json
import subprocess
from itertools import batched
from typing import Any

from tests.audit_book import FAULTS, is_clean
from tests.provider_process import ROOT
from tests.storm.figures import shortfalls
from tests.storm.killing import SENDING_SHARE
from tests.storm.points import hits_due
from tests.storm.storm import Asked, Outcome

SHOWN_MAX = 5
HITS_A_LINE = 6
IN_FLIGHT_MIN = 20


def tell(asked: Asked, outcome: Outcome, *, found_as: str, as_json: bool) -> int:
    """Print all of it; 0, 1, or 3 when a guard was out and nobody noticed."""
    counts, progress = outcome.counts, outcome.progress
    troubles = [*progress.troubles, *_own_shortfalls(outcome)]
    troubles += shortfalls(outcome.figures, asked.operations)
    ok = is_clean(counts) and counts["unresolved"] == 0 and not troubles
    shown = ", ".join(f"{name} {counts[name]}" for name in (*FAULTS, "unresolved"))
    print(
        f"The auditor read {counts['operations']} operations, {counts['in_book']} refunds: {shown}"
    )
    for name, sentences in counts["found"].items():
        print(f"  {name}: {'; '.join(sentences[:SHOWN_MAX])}")
    for row in batched(outcome.hits.items(), HITS_A_LINE, strict=False):
        print("  hit: " + ", ".join(f"{point} {n}" for point, n in row))
    print(f"  {progress.disasters}, {outcome.pauses} pauses, {progress.restarts} restarts")
    for each in troubles:
        print(f"  NOT OK: {each}")
    print(f"{outcome.figures}")
    print(f"{outcome.seconds} s in all, ok: {ok}.")
    if found_as:
        noticed = "the auditor noticed" if counts[found_as] else "NOBODY NOTICED"
        print(f"BREAK={asked.broken}: {noticed}: {found_as} {counts[found_as]}.")
    if as_json:
        print(json.dumps(_line(asked, outcome, troubles) | {"ok": ok}))
    if found_as:
        return 1 if counts[found_as] else 3
    return 0 if ok else 1


def _own_shortfalls(outcome: Outcome) -> list[str]:
    """Where the storm was weaker than it promises."""
    progress = outcome.progress
    least = min(progress.in_flight, default=0)
    must = {
        f"only {progress.killed} of {progress.kills} were killed": (
            progress.killed >= progress.kills
        ),
        f"only {progress.killed_while_sending} were killed while sending": (
            progress.killed_while_sending >= int(SENDING_SHARE * progress.kills)
        ),
        f"once only {least} were in flight": least >= IN_FLIGHT_MIN,
        # Here the provider keeps its word: whatever failed had not been made.
        f"{outcome.counts['called_failed']} were called failed when they had been made": (
            outcome.counts["called_failed"] == 0
        ),
        f"the ledger has {outcome.counts['operations']} of {progress.operations}": (
            outcome.counts["operations"] == progress.operations
        ),
    }
    short = [said for said, holds in must.items() if not holds]
    due = hits_due(progress.operations)
    rarely = [point for point, n in outcome.hits.items() if n < due]
    return short + [f"hit less than {due} times: {', '.join(rarely)}"] * bool(rarely)


def _line(asked: Asked, outcome: Outcome, troubles: list[str]) -> dict[str, Any]:
    progress, counts, found = outcome.progress, outcome.counts, outcome.figures
    return {
        "operations": asked.operations,
        "kills": progress.killed,
        "kills_while_sending": progress.killed_while_sending,
        "kills_after_paying": progress.killed_after_paying,
        "pauses": outcome.pauses,
        "restarts": progress.restarts,
        "cuts": sum(n for point, n in outcome.hits.items() if point.startswith("commit-")),
        "disasters": progress.disasters,
        "hits": outcome.hits,
        "in_flight_least": min(progress.in_flight, default=0),
        "sent": found.sent,
        "in_book": found.in_book,
        "succeeded": found.succeeded,
        "unknown_seen": found.unknown_seen,
        "resent": found.resent,
        "late_landings": found.late_landings,
        "made_for_forgotten": found.elsewhere,
        "paid_again": found.paid_again,
        "networks": outcome.networks,
        "broker": asked.broker,
        **{name: counts[name] for name in (*FAULTS, "called_failed", "unresolved")},
        "found": counts["found"],
        "cases": found.cases,
        "troubles": troubles,
        "seed": asked.seed,
        "broken": asked.broken,
        "commit": _commit(),
        "seconds": outcome.seconds,
    }


def _commit() -> str:
    ran = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    return ran.stdout.strip() or "unknown"
