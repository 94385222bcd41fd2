"""A deploy that does not end: every program is asked to end and started again, each few seconds."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.outages.asked import Asked
from tests.outages.house import Going, House
from tests.outages.judged import Verdict
from tests.walkthrough.programs import Program, wait_until

EVERY_SECONDS, SECONDS = 4.0, 50.0
# An init system that is told to wait 50 s: docs/operating.md.
END_SECONDS_MAX = 50
BEFORE, AFTER = 10, 5
UNKNOWN_SHARE_MAX = 0.01


class _Deploy:
    """`restarts` and the longest that an end took, over all programs."""

    def __init__(self, here: House, *, kills: bool) -> None:
        self.restarts, self.longest_end_seconds = 0, 0.0
        self._here, self._kills = here, kills
        self._lock = threading.Lock()

    def go_on(self, seconds: float) -> None:
        """All programs at once, each on its own time."""
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(len(self._here.programs)) as threads:
            programs = self._here.programs.values()
            for each in [threads.submit(self._again, program, until) for program in programs]:
                each.result()

    def _again(self, program: Program, until: float) -> None:
        while time.monotonic() < until:
            time.sleep(EVERY_SECONDS)
            began = time.monotonic()
            if self._kills:
                program.kill_all()
            else:
                program.ask_to_stop()
                wait_until(
                    lambda: not program.runs(),
                    seconds=END_SECONDS_MAX,
                    what=f"the end of {program.name}",
                )
            with self._lock:
                self.restarts += 1
                self.longest_end_seconds = max(self.longest_end_seconds, time.monotonic() - began)
            self._here.start_again(program)


def restarts(asked: Asked) -> Verdict:
    """What is being sent is finished; no unknown is made by it."""
    with House() as here, Going(here, asked) as going:
        going.until_more(BEFORE)
        before = going.succeeded
        deploy = _Deploy(here, kills=asked.broken == "kill")
        deploy.go_on(SECONDS)
        meanwhile = going.succeeded - before
        going.until_more(AFTER)
        going.rest()
        verdict = going.judged()
    programs = len(here.programs)
    verdict.check(
        "restarted",
        f"{deploy.restarts} restarts of {programs} programs while {meanwhile} refunds succeeded;"
        f" the longest end took {deploy.longest_end_seconds:.1f} s",
        holds=deploy.restarts >= 2 * programs and meanwhile > 0,
    )
    unknown = verdict.figures["unknown_meanwhile"]
    verdict.check(
        "unknowns",
        f"{unknown} of {going.progress.proposed} refunds became unknown",
        holds=unknown <= UNKNOWN_SHARE_MAX * going.progress.proposed,
    )
    verdict.figures |= {
        "restarts": deploy.restarts,
        "succeeded_meanwhile": meanwhile,
        "longest_end_seconds": round(deploy.longest_end_seconds, 1),
    }
    return verdict
