"""The scripted leads: they say yes to exactly what they were told to, over the console's forms."""

from __future__ import annotations

import queue
import threading
import time
from typing import Self

from tests.bad_agent.wishes import Wish
from tests.drive_console import Console, Refused

LEADS = ("ben", "cleo")
# Others may ask about the same order while the page is open: then it is read again.
READS_MAX = 8


class Leads:
    """Each with a session of their own; `give` tells one of them what to approve."""

    def __init__(self, address: str, password: str) -> None:
        self._wanted: queue.Queue[tuple[Wish, str] | None] = queue.Queue()
        self._told: set[str] = set()
        self.approved: dict[str, Wish] = {}
        self.stuck: list[str] = []
        self._threads = [
            threading.Thread(target=self._work, args=(Console(address, name, password),))
            for name in LEADS
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for _each in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join()

    def give(self, wish: Wish, operation_id: str) -> None:
        """Approve this operation, once, for this wish. For the one thread that hears answers."""
        if operation_id not in self._told:
            self._told.add(operation_id)
            self._wanted.put((wish, operation_id))

    def wait(self, seconds: float) -> None:
        """Until everything given was decided. Raises TimeoutError."""
        give_up_at = time.monotonic() + seconds
        while len(self.approved) + len(self.stuck) < len(self._told):
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{len(self._told) - len(self.approved)} are not decided yet")
            time.sleep(0.1)

    def _work(self, person: Console) -> None:
        person.sign_in()
        while (wanted := self._wanted.get()) is not None:
            wish, operation_id = wanted
            try:
                self._approve(person, wish, operation_id)
                self.approved[operation_id] = wish
            except (Refused, LookupError) as error:
                self.stuck.append(f"{wish.order_ref} {operation_id}: {error}"[:600])

    def _approve(self, person: Console, wish: Wish, operation_id: str) -> None:
        ticks = {"separate_refund_confirmed": "on"}
        for read in range(1, READS_MAX + 1):
            try:
                person.approve(operation_id, **ticks)
                return
            except Refused:
                if read == READS_MAX:
                    raise
