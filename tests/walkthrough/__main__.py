"""`make walkthrough`: an afternoon of lost answers, crashes and races, for real.

Real processes on real sockets: servers, a provider, the console, the workers. Agents propose over
REST, leads approve on the console's own forms, programs are killed from outside. At the end an
auditor that imports nothing of ours counts in the provider's book and in the database.

    python -m tests.walkthrough [STEP ...]

SEED= draws amounts, references, accounts and where faults strike. NOTICES=off: the provider tells
nothing of its own accord all afternoon, and everything ends the same. JSON=1 makes the last line
one JSON object. BREAK= switches one guard off in the workers or at the door for notices; the run
must then end with 1, by the auditor's own count. Ends with 0 when all is well, 2 for a setting it does not know, and 3 when a
switched-off guard was not noticed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import httpx

from tests import ended
from tests.audit_book import FAULTS, audit, is_clean
from tests.walkthrough import bringing, finding, queues, signing, steps, telling
from tests.walkthrough.installation import Installation
from tests.walkthrough.programs import wait_until
from tests.walkthrough.walk import NotAsTold, Step, Walk

STEPS: dict[str, Callable[[Walk, Step], None]] = {
    each.__name__: each
    for each in (
        steps.a_answer_dropped,
        steps.b_killed_after_answer,
        steps.c_two_workers,
        steps.d_stale_order,
        steps.e_changed_arguments,
        steps.f_no_lookup_case,
        steps.g_stored_500,
        queues.h_credential_revoked,
        queues.i_provider_down,
        queues.j_over_refund_race,
        finding.k_lookup_lags,
        finding.l_absent_in_time,
        finding.m_late_landing,
        finding.n_key_window_ends,
        finding.o_a_strangers_equal_refund,
        finding.p_notice_before_the_answer,
        finding.q_outside_refund_is_seen,
        finding.r_taken_back_after_days,
        telling.s_no_notices_same_end,
        telling.t_notice_while_the_store_is_away,
        signing.u_two_sign_that_it_did_not_happen,
        signing.v_remedy_and_then_the_first_lands,
        bringing.w_backup_restored_under_load,
        bringing.x_stuck_rows_imported,
    )
}
# BREAK -> the count in which the auditor must find it.
FOUND_AS = {
    "lease-requeue": "duplicates",
    "new-key": "duplicates",
    "refused-on-500": "false_ends",
    "release-on-timeout": "money",
    "quiet-period": "duplicates",
    "match-by-amount": "false_ends",
    "first-notice-wins": "false_ends",
    "ack-before-store": "notices_lost",
    "double": "duplicates",
    "lost": "lost",
    "missing-event": "missing_events",
}
# Not broken in the workers but in the provider, and in the web program.
BROKEN_ELSEWHERE = frozenset({"double", "ack-before-store"})
REST_SECONDS_MAX = 20


def main(asked: list[str]) -> int:
    broken, wanted = os.environ.get("BREAK", ""), asked or [*STEPS]
    seed_text, notices = os.environ.get("SEED", "4821"), os.environ.get("NOTICES", "on")
    unknown = [name for name in wanted if name not in STEPS]
    unknown += [] if broken in ("", *FOUND_AS) else [f"BREAK={broken}"]
    unknown += [] if notices in ("on", "off") else [f"NOTICES={notices}"]
    unknown += [] if seed_text.isdecimal() else [f"SEED={seed_text}"]
    if unknown:
        known = f"steps {', '.join(STEPS)}; BREAK {', '.join(FOUND_AS)}; NOTICES on, off; SEED"
        print(f"This is not known: {', '.join(unknown)}. There is: {known} a whole number.")
        return 2
    began = time.monotonic()
    print(f"Starting an installation of its own, SEED={seed_text}.", flush=True)
    in_workers = "" if broken in BROKEN_ELSEWHERE else broken
    in_web = "tests.walkthrough.broken_web" if broken == "ack-before-store" else "config.asgi"
    with Installation(broken=in_workers, web_module=in_web) as here:
        print(f"It runs at {here.address} after {time.monotonic() - began:.1f} s.", flush=True)
        walk = Walk(here, int(seed_text), with_notices=notices == "on")
        if broken == "double":
            here.provider.fault("execute_twice", account="plain-nokeys")
        taken = [_take(walk, name) for name in wanted]
        counts = _count(walk)
        _look_back(walk, taken)
        walk.end()
    ok = all(each["ok"] for each in taken) and is_clean(counts)
    seconds = round(time.monotonic() - began, 1)
    _tell(counts, broken, seconds)
    found = counts.pop("found")
    if os.environ.get("JSON"):
        line = {"steps": taken, **counts, "found": found, "seed": int(seed_text)}
        print(json.dumps(line | {"broken": broken, "seconds": seconds, "ok": ok}))
    if broken:
        return 1 if counts[FOUND_AS[broken]] else 3
    return 0 if ok else 1


def _take(walk: Walk, name: str) -> dict[str, Any]:
    """One step; whatever it left behind, the next one finds everything awake and answering."""
    step, began, trouble = Step(name), time.monotonic(), ""
    try:
        STEPS[name](walk, step)
    except Exception as error:
        # A step may end in any way at all; it is told, and the afternoon goes on.
        trouble = f"{type(error).__name__}: {error}"
        where = traceback.extract_tb(error.__traceback__)[1]
        trouble += f" ({where.filename.rpartition('/')[2]}:{where.lineno})"
    walk.here.heal()
    seconds = round(time.monotonic() - began, 1)
    states = walk.trail.states(step.operation_id) if step.operation_id else []
    in_book = sum(len(walk.refunds(each)) for each in step.ids())
    told = "ok" if not trouble else "NOT AS TOLD"
    print(f"{name}: {told}, {seconds} s, {' -> '.join(states)}, in the book: {in_book}", flush=True)
    if trouble:
        print(_seen(walk, step, trouble), flush=True)
    return {
        "name": name,
        "ok": not trouble,
        "seconds": seconds,
        "operation_id": step.operation_id,
        "states": states,
        "refunds_in_book": in_book,
        "killed": step.killed,
        "screen": step.screen,
        "trouble": trouble,
    }


def _look_back(walk: Walk, taken: list[dict[str, Any]]) -> None:
    """What a step said about the rest of the afternoon must have held."""
    for each in taken:
        try:
            walk.at_the_end.get(each["name"], lambda: None)()
        except NotAsTold as error:
            each |= {"ok": False, "trouble": f"at the end: {error}"}
            print(f"{each['name']}: NOT AS TOLD at the end: {error}")


def _seen(walk: Walk, step: Step, trouble: str) -> str:
    """What a failing step saw: the trouble, the trail, the requests, and the screen."""
    lines = [f"  {trouble}"]
    for operation_id in step.ids()[:3]:
        lines.append(f"  operation {operation_id}")
        for each in walk.trail.events(operation_id):
            lines.append(f"    {each['seq']} {each['event']} by {each['actor']} {each['detail']}")
        for call in walk.sends(operation_id):
            lines.append(f"    sent {call['received_at']}, answered {call['answered']}")
    if step.operation_id:
        # What the person saw last may be older than the trouble: read it once more.
        try:
            words = walk.person("ben").read_operation_page(step.operation_id).text
        except (httpx.HTTPError, AssertionError) as error:
            words = f"cannot be read: {error}"
        lines.append(f"  the operation page now: {' / '.join(words.splitlines())[:1500]}")
    lines.append(f"  screen: {step.screen or 'none'}")
    return "\n".join(lines)


def _count(walk: Walk) -> dict[str, Any]:
    """The auditor's counts, once nothing is on its way any more (or does not come to rest)."""
    try:
        wait_until(lambda: walk.trail.at_rest() or None, seconds=REST_SECONDS_MAX)
    except TimeoutError:
        print(f"Not everything came to rest within {REST_SECONDS_MAX} s.")
    return audit(str(walk.provider.book_file), walk.here.database)


def _tell(counts: dict[str, Any], broken: str, seconds: float) -> None:
    shown = ", ".join(f"{name} {counts[name]}" for name in (*FAULTS, "unresolved"))
    print(f"The auditor read {counts['operations']} operations and {counts['in_book']} refunds:")
    print(f"  {shown}; {seconds} s in all.")
    for name, sentences in counts["found"].items():
        for sentence in sentences:
            print(f"  {name}: {sentence}")
    if broken:
        name = FOUND_AS[broken]
        noticed = "the auditor noticed" if counts[name] else "NOBODY NOTICED"
        print(f"BREAK={broken}: {noticed}: {name} {counts[name]}.")


if __name__ == "__main__":
    ended.run(lambda: main(sys.argv[1:]))
