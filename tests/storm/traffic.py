"""The people and agents of the storm: they propose, approve, and say the same again when unheard.

When the database has lost its newest rows, an agent finds that nobody knows its refund and asks for
it again; a lead who reads that just this was given back already rejects it; and an operator closes
the cases about refunds that no row explains, or whose row had said that nothing was sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import httpx

from tests.drive_console import AgentDoor, Console, Refused
from tests.storm.drawn import Wish
from tests.storm.progress import Progress
from tests.storm.reader import IN_FLIGHT, KNOWN, TO_EXPLAIN, WAITING, Reader
from tests.walkthrough.installation import Installation

AGENTS, LEADS = 8, ("ben", "cleo")
PATIENCE_SECONDS = 60
# While the web is down nothing is proposed, and what is in flight goes on landing.
IN_FLIGHT_MAX = 120
IN_FLIGHT_WANTED = 75
LOOK_SECONDS, ASK_AFTER_SECONDS = 0.1, 3.0
GIVEN_BACK = "The page shows that just this amount was given back already."
EXPLAINED = {
    "choice": "explained",
    "reason": "It was sent by us before the database lost its newest rows.",
    "ticket_explained": "OPS-4711",
}
MADE_GOOD = {
    "choice": "remedy",
    "reason": "The customer took a voucher instead of the refund.",
    "kind": "voucher",
    "reference_remedy": "V-2210",
}
_AWAY = (httpx.HTTPError, AssertionError, LookupError)


class Traffic:
    """Keeps so many refunds in flight until all are proposed; then until the storm is over."""

    def __init__(self, here: Installation, wishes: list[Wish], progress: Progress) -> None:
        self.here, self.wishes, self.progress = here, wishes, progress
        self.ids: dict[int, str] = {}

    def start(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Start everybody; what they return is to be asked for their errors."""
        started = [pool.submit(self._agent) for _ in range(AGENTS)]
        started += [pool.submit(self._lead, name, n) for n, name in enumerate(LEADS)]
        others = (self._count, self._ask_after, self._explain)
        return started + [pool.submit(each) for each in others]

    def _agent(self) -> None:
        """Proposes one after the other; the same call again until it is answered."""
        reader = Reader(self.here.database)
        door = AgentDoor(
            self.here.address, self.here.keys["Echo"], patience_seconds=PATIENCE_SECONDS
        )
        while not self.progress.over.is_set():
            flying = reader.count(IN_FLIGHT)
            if flying >= IN_FLIGHT_MAX or (flying >= IN_FLIGHT_WANTED and self.progress.ahead):
                self.progress.over.wait(LOOK_SECONDS)
                continue
            number = self.progress.number()
            if number is None:
                self.progress.over.wait(LOOK_SECONDS)
                continue
            self._propose(door, self.wishes[number])
        reader.close()
        door.close()

    def _propose(self, door: AgentDoor, wish: Wish) -> None:
        while not self.progress.over.is_set():
            try:
                answer = door.propose(
                    session_id="storm",
                    tool_call_id=f"call_{wish.number}",
                    order_ref=wish.order,
                    amount_minor=wish.amount_minor,
                    requested_by={"kind": "customer", "ref": wish.customer},
                )
            except httpx.HTTPError:
                continue
            if answer.status_code in (200, 201):
                self.ids[wish.number] = answer.json()["operation_id"]
            elif answer.status_code >= 500 or answer.status_code == 429:
                time.sleep(LOOK_SECONDS)
                continue
            else:
                self.progress.troubles.append(
                    f"proposal {wish.number}: {answer.status_code} {answer.text[:300]}"
                )
            return

    def _lead(self, name: str, number: int) -> None:
        """Decides on whatever waits for it, what went stale too, whichever way the last try ended."""
        reader, person = Reader(self.here.database), _Person(self.here, name)
        while not self.progress.over.is_set():
            waiting = reader.rows(WAITING)
            mine = [each for each in waiting if int(each["id"][-4:], 16) % len(LEADS) == number]
            for each in mine[:10]:
                # Stale by now, stopped, or the page did not come: the others wait all the same.
                person.does(partial(_decide, each["id"], each["given_back"]))
            self.progress.over.wait(LOOK_SECONDS)
        reader.close()

    def _ask_after(self) -> None:
        """What the database forgot is proposed again, by the same call."""
        reader = Reader(self.here.database)
        while not self.progress.over.is_set():
            answered = dict(self.ids)
            known = {row["id"] for row in reader.rows(KNOWN)}
            for number, operation_id in answered.items():
                if operation_id not in known:
                    del self.ids[number]
                    self.progress.again.append(number)
            self.progress.over.wait(ASK_AFTER_SECONDS)
        reader.close()

    def _explain(self) -> None:
        """Closes what is open about refunds that a lost row explains: other refunds may go on."""
        reader, person = Reader(self.here.database), _Person(self.here, "ines")
        while not self.progress.over.is_set():
            for row in reader.rows(TO_EXPLAIN):
                person.does(partial(_close, row["id"], MADE_GOOD if row["owed"] else EXPLAINED))
            self.progress.over.wait(ASK_AFTER_SECONDS)
        reader.close()

    def _count(self) -> None:
        """How many are in flight, from the first full house to the last proposal."""
        reader = Reader(self.here.database)
        while not self.progress.over.is_set() and not self.progress.all_proposed:
            flying = reader.count(IN_FLIGHT)
            if self.progress.in_flight or flying >= IN_FLIGHT_WANTED:
                self.progress.in_flight.append(flying)
            self.progress.over.wait(5 * LOOK_SECONDS)
        reader.close()


class _Person:
    """Somebody at the console, who signs in anew when something went wrong."""

    def __init__(self, here: Installation, name: str) -> None:
        self._here, self._name = here, name
        self._console: Console | None = None

    def does(self, act: Callable[[Console], object]) -> bool:
        """Whether it was done."""
        try:
            if self._console is None:
                self._console = Console(
                    self._here.address, self._name, self._here.password, patience_seconds=10
                ).sign_in()
            act(self._console)
        except _AWAY:
            if self._console is not None:
                self._console.close()
            self._console = None
            return False
        return True


def _decide(operation_id: str, given_back: bool, person: Console) -> None:
    if given_back:
        person.reject(operation_id, GIVEN_BACK)
    else:
        person.approve(operation_id, separate_refund_confirmed="on")


def _close(case_id: int, told: dict[str, str], person: Console) -> None:
    answer = person.send(person.get(f"/cases/{case_id}").form("resolution-form"), told)
    if answer.status != 200:  # whoever signed in long ago must do so again
        raise Refused(f"case {case_id}: {answer.status}")
