"""Gives the orders to strike, at the pace of the refunds."""

from __future__ import annotations

from tests.storm.house import House
from tests.storm.points import call_off, give, hits, planned, struck
from tests.storm.progress import Progress

# All are given before the last refund is proposed: somebody must still pass by.
FASTER = 2.0
LOOK_SECONDS = 0.1
WAITING_MAX = 60


class Faults:
    """Ends when every order was struck, or nobody passes by any more."""

    def __init__(self, here: House, progress: Progress, seed: int) -> None:
        self.here, self.progress = here, progress
        self.orders = planned(seed, progress.operations)

    def run(self) -> None:
        """Returns when all was given and struck; `progress.faults_done` says how far it is."""
        given = 0
        while not self.progress.over.is_set():
            happened = len(struck(self.here.orders))
            self.progress.faults_share = happened / len(self.orders)
            if happened == len(self.orders):
                break
            due = min(len(self.orders), int(len(self.orders) * self.progress.share * FASTER))
            while given < due and given - happened < WAITING_MAX:
                point, kind = self.orders[given]
                give(self.here.orders, point, given, kind)
                given += 1
            self.progress.over.wait(LOOK_SECONDS)

    def counted(self) -> dict[str, int]:
        """Hits by point; takes away what nobody came upon."""
        call_off(self.here.orders)
        return hits(struck(self.here.orders))
