"""The people and agents of the storm: they propose, approve, and say the same again when unheard."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

import httpx

from tests.drive_console import AgentDoor, Console, Refused
from tests.storm.drawn import Wish
from tests.storm.house import House
from tests.storm.progress import Progress
from tests.storm.reader import IN_FLIGHT, WAITING, Reader

AGENTS, LEADS = 2, ("ben", "cleo")
PATIENCE_SECONDS = 60
IN_FLIGHT_MAX = 60
IN_FLIGHT_WANTED = 30
LOOK_SECONDS = 0.1
_AWAY = (httpx.HTTPError, Refused)


class Traffic:
    """Keeps so many refunds in flight until all are proposed; then until the storm is over."""

    def __init__(self, here: House, wishes: list[Wish], progress: Progress) -> None:
        self.here, self.wishes, self.progress = here, wishes, progress
        self.ids: dict[int, str] = {}

    def start(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Start everybody; what they return is to be asked for their errors."""
        started = [pool.submit(self._agent) for _ in range(AGENTS)]
        started += [pool.submit(self._lead, name, n) for n, name in enumerate(LEADS)]
        started.append(pool.submit(self._count))
        return started

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
                break
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
        """Approves whatever waits for it, what went stale too, whichever way the last try ended."""
        reader = Reader(self.here.database)
        person: Console | None = None
        while not self.progress.over.is_set():
            waiting = [row["id"] for row in reader.rows(WAITING)]
            mine = [each for each in waiting if int(each[-4:], 16) % len(LEADS) == number]
            for each in mine[:10]:
                try:
                    if person is None:
                        person = Console(
                            self.here.address, name, self.here.password, patience_seconds=10
                        ).sign_in()
                    person.approve(each, separate_refund_confirmed="on")
                except (*_AWAY, AssertionError, KeyError):
                    # Stale by now, or the page did not come: what the database says decides.
                    if person is not None:
                        person.close()
                    person = None
                    break
            else:
                self.progress.over.wait(LOOK_SECONDS)
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
