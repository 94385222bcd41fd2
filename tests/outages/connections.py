"""More who want a connection than there are: first none is to be had, then three.

Strangers take every connection of the server, as an application next door that opens too many. Each
program shares two among its threads (AFTERSEND_DATABASE_POOL), and fifty callers come at once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import psycopg

from tests.outages.asked import Asked
from tests.outages.house import Going, House
from tests.outages.judged import Verdict

POOL, FEW = 2, 3
NONE_SECONDS, FEW_SECONDS = 25.0, 15.0
CALLERS, PAUSE_SECONDS = 50, 3.0
CALL_SECONDS_MAX = 90
# A pool gives up after 5 s, a statement too; the rest is for a machine that does other things.
WAIT_SECONDS_MAX = 15.0
BACK_SECONDS_MAX = 60
BEFORE, AFTER = 10, 5
NAME = "aftersend"
# Done, not known here, told to wait, and not able to do it now: all of them without a send.
FINE = {200, 201, 429, 503}
_END_OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"


class _Callers:
    """Each asks again and again for a refund that was asked for already; what they heard."""

    def __init__(self, here: House, ids: list[str]) -> None:
        self.answers: Counter[int] = Counter()
        self.longest_seconds = 0.0
        self._here, self._ids = here, ids
        self._over, self._lock = threading.Event(), threading.Lock()

    @contextmanager
    def calling(self) -> Iterator[None]:
        with ThreadPoolExecutor(CALLERS) as threads:
            started = [threads.submit(self._call, number) for number in range(CALLERS)]
            try:
                yield
            finally:
                self._over.set()
        for each in started:
            each.result()

    def _call(self, number: int) -> None:
        key = self._here.keys["Echo"]
        with httpx.Client(
            base_url=self._here.address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=CALL_SECONDS_MAX,
            trust_env=False,
        ) as client:
            while not self._over.is_set():
                began = time.monotonic()
                answer = client.get(f"/api/v1/refunds/{self._ids[number % len(self._ids)]}")
                seconds = time.monotonic() - began
                with self._lock:
                    self.answers[answer.status_code] += 1
                    self.longest_seconds = max(self.longest_seconds, seconds)
                self._over.wait(PAUSE_SECONDS)


class _Strangers:
    """Whoever takes connections and keeps them."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._taken = ExitStack()
        self.held: list[psycopg.Connection[tuple[object, ...]]] = []

    def take_all(self) -> None:
        """Ours end, and what becomes free is taken."""
        ends_ours = self._one()
        assert ends_ours is not None, "the server has no connection to begin with"
        ended = 1
        while ended:
            while self._one() is not None:
                pass
            ended = len(ends_ours.execute(_END_OURS, [NAME]).fetchall())

    def leave(self, count: int) -> None:
        """Let so many go."""
        for each in self.held[-count:]:
            each.close()
        del self.held[-count:]

    def _one(self) -> psycopg.Connection[tuple[object, ...]] | None:
        try:
            taken = psycopg.connect(self._database, autocommit=True, application_name="stranger")
        except psycopg.OperationalError:
            return None
        self.held.append(taken)
        return taken


def few(asked: Asked) -> Verdict:
    """Whoever calls is answered in bounded time, and nothing is sent without a commit."""
    patient = asked.broken == "wait-forever"
    settings = {"AFTERSEND_DATABASE_POOL": str(POOL), "PGAPPNAME": NAME}
    web = "tests.outages.patient_web" if patient else "config.asgi"
    with House(settings=settings, web_module=web) as here, Going(here, asked) as going:
        going.until_more(BEFORE)
        strangers = _Strangers(here.database)
        callers = _Callers(here, [*going.traffic.ids.values()])
        with callers.calling():
            strangers.take_all()
            taken = len(strangers.held)
            time.sleep(NONE_SECONDS)
            before = going.succeeded
            strangers.leave(FEW)
            time.sleep(FEW_SECONDS)
            with_few = going.succeeded - before
        strangers.leave(len(strangers.held))
        back_seconds = going.until_more(AFTER)
        going.rest()
        alive = [name for name, each in here.programs.items() if each.runs()]
        verdict = going.judged()
    answers = dict(sorted(callers.answers.items()))
    verdict.check(
        "none_left",
        f"strangers took {taken} connections; {CALLERS} callers were answered {answers}",
        holds=callers.answers[503] > 0 and callers.answers.keys() <= FINE,
    )
    longest = round(callers.longest_seconds, 1)
    verdict.check(
        "bounded", f"nobody waited longer than {longest} s", holds=longest <= WAIT_SECONDS_MAX
    )
    verdict.check(
        "by_itself",
        f"{len(alive)} of {len(here.programs)} programs ran on; {with_few} refunds succeeded on"
        f" {FEW} connections, and they went on {back_seconds} s after there were enough",
        holds=len(alive) == len(here.programs) and back_seconds <= BACK_SECONDS_MAX,
    )
    verdict.figures |= {
        "connections_taken": taken,
        "answers": answers,
        "longest_answer_seconds": longest,
        "succeeded_on_few": with_few,
        "back_seconds": back_seconds,
    }
    return verdict
