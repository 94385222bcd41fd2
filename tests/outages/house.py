"""The installation that an outage befalls: a few hands that send, and refunds that go on meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Self

from tests.bad_agent.__main__ import POLICY_CHANGES
from tests.due_at_once import crowd
from tests.outages.asked import Asked
from tests.outages.judged import Verdict, judge
from tests.storm.drawn import Wish
from tests.storm.progress import Progress
from tests.storm.reader import IN_FLIGHT, Reader
from tests.storm.traffic import Traffic
from tests.walkthrough.installation import Installation

SENDERS = 6
WISHES = 450
LOOK_SECONDS = 0.1
BEGIN_SECONDS_MAX, REST_SECONDS_MAX, BROKEN_REST_SECONDS_MAX = 180, 300, 60
# Delays only, on top of the walkthrough's: no rule is shortened away.
LIMITS: dict[str, Any] = {"calls_per_minute_max": 1_000_000, "approval_left_seconds": 30}
# Most of it policy clears by itself, so that refunds go on as fast as they are sent; the rest is
# for the leads. A busy machine is no reason to ask for the facts again.
POLICY = POLICY_CHANGES | {
    "tier0_max_minor = 0 ": "tier0_max_minor = 4000 ",
    "facts_fresh_seconds = 900\n": "facts_fresh_seconds = 86400\n",
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 60000\n",
}
AMOUNT_MINOR_MAX = 5000
SLOW_SHARE, SLOW_SECONDS = 0.7, 1.2
SUCCEEDED = "SELECT count(*) AS n FROM operation WHERE state = 'succeeded'"


class House(Installation):
    """Its one program that sends has six hands."""

    def __init__(
        self,
        *,
        broken: str = "",
        broken_module: str = "tests.walkthrough.broken",
        web_module: str = "config.asgi",
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            broken=broken,
            broken_module=broken_module,
            web_module=web_module,
            settings=settings,
            policy_changes=POLICY,
            limits=LIMITS,
        )

    @property
    def server_log(self) -> str:
        """What PostgreSQL wrote."""
        return self._database.log.read_text(errors="replace")

    def _commands(self) -> dict[str, list[str]]:
        commands = super()._commands()
        money = commands["worker-money"]
        money[money.index("-P") :] = ["-P", "threads", "-c", str(SENDERS)]
        return commands


class Going:
    """Refunds that are proposed, approved and sent while the block runs; `rest` ends it in peace.

    `lost_share`: of so many requests the provider's answer gets lost once it has paid.
    """

    def __init__(self, here: House, asked: Asked, *, lost_share: float = 0) -> None:
        self.here = here
        self.progress = Progress(WISHES, kills=0, faults_share=1)
        self.reader = Reader(here.database)
        self._wishes = _drawn(asked.seed)
        self.traffic = Traffic(here, self._wishes, self.progress)
        self._seed, self._lost_share = asked.seed, lost_share
        self._rest_seconds_max = BROKEN_REST_SECONDS_MAX if asked.broken else REST_SECONDS_MAX
        self._threads = ThreadPoolExecutor(16)
        self._people: list[Future[None]] = []

    def __enter__(self) -> Self:
        paid = [
            crowd.Wish(each.order, each.account, 0, made=False, ours=True) for each in self._wishes
        ]
        crowd.tell_provider(self.here, paid)
        crowd.feed(self.here, paid)
        for account in crowd.ACCOUNTS:
            self._often("delay", account, SLOW_SHARE, seconds=SLOW_SECONDS)
            if self._lost_share:
                self._often("drop_after_commit", account, self._lost_share)
        self._people = self.traffic.start(self._threads)
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.over.set()
        self._threads.shutdown()
        self.reader.close()

    @property
    def succeeded(self) -> int:
        return self.reader.count(SUCCEEDED)

    def until_more(self, count: int, seconds_max: float = BEGIN_SECONDS_MAX) -> float:
        """So many more have succeeded; how long it took."""
        wanted = self.succeeded + count
        return self.until(lambda: self.succeeded >= wanted, seconds_max, f"{count} more refunds")

    def rest(self) -> float:
        """Nothing more is proposed, and nothing is on its way; how long it took."""
        self.progress.operations = self.progress.proposed
        self.here.provider.clear_faults()
        at_rest = partial(self.reader.count, IN_FLIGHT)
        return self.until(lambda: at_rest() == 0, self._rest_seconds_max, "the rest")

    def judged(self) -> Verdict:
        """What both sides show; call it at rest."""
        return judge(
            str(self.here.provider.book_file),
            self.here.database,
            proposed=self.progress.proposed,
            troubles=self.progress.troubles,
            server_log=self.here.server_log,
        )

    def until(self, holds: Callable[[], bool], seconds_max: float, what: str) -> float:
        """How long it took until it held. What does not come is a trouble, and the run goes on."""
        began = time.monotonic()
        while not holds():
            for each in self._people:
                if each.done():
                    each.result()
            if time.monotonic() > began + seconds_max:
                self.progress.troubles.append(f"{what}: not within {seconds_max:g} s")
                break
            time.sleep(LOOK_SECONDS)
        return round(time.monotonic() - began, 1)

    def _often(self, fault: str, account: str, share: float, **options: Any) -> None:
        self.here.provider.fault(
            fault, account=account, times=None, probability=share, seed=self._seed, **options
        )


def _drawn(seed: int) -> list[Wish]:
    """One refund an order; half of them where a second request is a second refund."""
    draw = random.Random(seed)
    accounts = ("plain-nokeys", "plain-nokeys", "plain-main", "plain-forever")
    return [
        Wish(n, f"outage-{n}", draw.choice(accounts), draw.randrange(100, AMOUNT_MINOR_MAX))
        for n in range(WISHES)
    ]
