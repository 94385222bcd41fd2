"""One storm from its first refund to the rest after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.audit_book import audit
from tests.due_at_once import crowd
from tests.storm import figures
from tests.storm.disasters import Disasters
from tests.storm.drawn import SETTLED_BY_PROOF, Wish, drawn, weather
from tests.storm.faults import Faults
from tests.storm.house import House
from tests.storm.keeping import Keeper
from tests.storm.killing import Killer
from tests.storm.progress import Progress
from tests.storm.reader import IN_FLIGHT, Reader
from tests.storm.traffic import Traffic

# For the storm itself and for each refund: who needs longer does not get on.
STORM_SECONDS_MAX, STORM_SECONDS_MAX_FOR_ONE = 900, 12
REST_SECONDS_MAX = 900
BROKEN_REST_SECONDS_MAX = 90
NOBODY_PASSES_SECONDS = 20
TOLD_EVERY_SECONDS = 15
LOOK_SECONDS = 0.5
CASES_LEFT = """
SELECT count(*) AS n FROM review_case c JOIN operation o ON o.id = c.operation_id
WHERE c.closed_at IS NULL AND o.provider_account = ANY(%s)"""


@dataclass(frozen=True)
class Asked:
    """What the caller wants: counts, seed, the kind of broker, and the guard that is out."""

    operations: int
    kills: int
    seed: int
    broker: str
    broken: str


@dataclass(frozen=True)
class Outcome:
    """What came of it; `counts` are the auditor's, `hits` those of each fault point, `networks` the
    groups of senders that had one of their own."""

    progress: Progress
    counts: dict[str, Any]
    figures: figures.Figures
    hits: dict[str, int]
    pauses: int
    networks: int
    seconds: float


def storm(asked: Asked) -> Outcome:
    """Raises what a part of the storm itself raised: then nothing is proven."""
    began = time.monotonic()
    print(f"Starting an installation of its own, {asked}.", flush=True)
    progress = Progress(asked.operations, asked.kills)
    wishes = drawn(asked.seed, asked.operations)
    broken = "" if asked.broken == "double" else asked.broken
    with House(broken=broken, broker=asked.broker) as here:
        print(f"{len(here.networks)} groups of senders in networks of their own.", flush=True)
        _feed(here, wishes)
        if asked.broken == "double":
            here.provider.fault("execute_twice", account="plain-nokeys", times=None)
        here.provider.control("POST", "/faults", {"seed": asked.seed, "rules": weather(asked.seed)})
        for account in ("plain-main", "plain-hooks"):
            url = f"{here.address}/webhooks/{account}"
            here.provider.configure(account, webhook_url=url, notices=True)
        print(f"The storm begins after {time.monotonic() - began:.0f} s.", flush=True)
        parts = _Parts(here, wishes, progress, asked)
        parts.blow()
        earlier = parts.disasters.lost_tail.known
        counts = audit(str(here.provider.book_file), here.database, *earlier)
        found = figures.read(str(here.provider.book_file), here.database, SETTLED_BY_PROOF)
        hits, networks = parts.faults.counted(), len(here.networks)
    seconds = round(time.monotonic() - began, 1)
    return Outcome(progress, counts, found, hits, parts.keeper.pauses, networks, seconds)


def _feed(here: House, wishes: list[Wish]) -> None:
    firsts = {each.order: each for each in wishes}.values()
    paid = [crowd.Wish(each.order, each.account, 0, made=False, ours=True) for each in firsts]
    crowd.tell_provider(here, paid)
    crowd.feed(here, paid)


class _Parts:
    """All that happens at once, and then the calm with people and keeper alone."""

    def __init__(self, here: House, wishes: list[Wish], progress: Progress, asked: Asked) -> None:
        self.here, self.progress, self.asked = here, progress, asked
        self.traffic = Traffic(here, wishes, progress)
        self.killer = Killer(here, progress, asked.seed)
        self.faults = Faults(here, progress, asked.seed)
        # Without a guard there may be no way back from a lost tail.
        self.disasters = Disasters(here, progress, asked.seed, losses=not asked.broken)
        self.keeper = Keeper(here, progress)
        self.reader = Reader(here.database)
        self._busy_at = time.monotonic()

    def blow(self) -> None:
        with ThreadPoolExecutor(24) as pool:
            bad = [pool.submit(each.run) for each in (self.killer, self.faults, self.disasters)]
            lasting = [pool.submit(self.keeper.run), *self.traffic.start(pool)]
            try:
                self._watch([*bad, *lasting], lambda: self._has_blown_over(bad))
                self._calm()
                self._await_rest([*bad, *lasting])
            finally:
                self.progress.over.set()
        for each in (*bad, *lasting):
            each.result()
        self.reader.close()

    def _has_blown_over(self, bad: list[Future[None]]) -> bool:
        """All is proposed and done; what nobody comes upon any more is not waited for."""
        killing, faults, disasters = (each.done() for each in bad)
        if not (self.progress.all_proposed and killing and disasters):
            return False
        if faults:
            return True
        if self.reader.count(IN_FLIGHT):
            self._busy_at = time.monotonic()
        return time.monotonic() > self._busy_at + NOBODY_PASSES_SECONDS

    def _watch(self, parts: list[Future[None]], is_over: Callable[[], bool]) -> None:
        progress = self.progress
        began = told_at = time.monotonic()
        seconds_max = STORM_SECONDS_MAX + STORM_SECONDS_MAX_FOR_ONE * self.asked.operations
        while not is_over():
            _raise_first(parts)
            now = time.monotonic()
            if now > began + seconds_max:
                raise TimeoutError(f"the storm did not get on within {seconds_max} s")
            if now > told_at + TOLD_EVERY_SECONDS:
                told_at = now
                flying = progress.in_flight[-1] if progress.in_flight else 0
                print(
                    f"  {now - began:.0f} s: {progress.proposed} proposed, {flying} in flight,"
                    f" {progress.killed} killed ({progress.killed_while_sending} while sending,"
                    f" {progress.killed_after_paying} after paying),"
                    f" {progress.faults_share:.0%} of the faults, {progress.restarts} restarts,"
                    f" {progress.disasters}",
                    flush=True,
                )
            time.sleep(LOOK_SECONDS)

    def _calm(self) -> None:
        """No fault any more, and programs whose clocks are right."""
        self.faults.counted()
        self.here.provider.clear_faults()
        self.here.provider.release()
        self.here.calm()
        for name, program in self.here.programs.items():
            if name.startswith("worker-") and program.runs():
                program.ask_to_stop()
        print("All faults are off; the rest is awaited.", flush=True)

    def _await_rest(self, parts: list[Future[None]]) -> None:
        """Until nothing is on its way and nothing that proof settles is still with a person."""
        seconds = BROKEN_REST_SECONDS_MAX if self.asked.broken else REST_SECONDS_MAX
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            _raise_first(parts)
            cases = self.reader.count(CASES_LEFT, list(SETTLED_BY_PROOF))
            if not cases and not self.reader.count(IN_FLIGHT):
                print(f"At rest after {time.monotonic() - began:.0f} s.", flush=True)
                return
            time.sleep(LOOK_SECONDS)
        self.progress.troubles.append(f"not everything came to rest within {seconds} s")


def _raise_first(parts: list[Future[None]]) -> None:
    for each in parts:
        if each.done():
            each.result()
