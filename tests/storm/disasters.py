"""What befalls everybody at once: the database crashes, the broker forgets, messages come again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.storm.house import House
from tests.storm.progress import Progress
from tests.storm.reader import Reader

LOOK_SECONDS = 0.2
REFUNDS_FOR_ONE_MORE, EACH_MAX = 100, 20
WEEK_SECONDS = 7 * 86_400
MONEY = ("refunds.tasks.send", "refunds.tasks.resend")
TASKS = (*MONEY, "reconciliation.tasks.look_up")
LIVING = """
SELECT id::text AS id FROM operation WHERE settled_at IS NULL AND state <> 'awaiting_approval'
ORDER BY id LIMIT 15"""
ENDED = "SELECT id::text AS id FROM operation WHERE settled_at IS NOT NULL ORDER BY id LIMIT 15"


@dataclass(frozen=True)
class Disaster:
    """`at`: the share of all refunds that is proposed by then."""

    at: float
    name: str


def foreseen(seed: int, operations: int) -> list[Disaster]:
    """Each kind so many times, spread over the storm by the seed. Pure."""
    draw = random.Random(f"disasters-{seed}")
    each = min(EACH_MAX, max(1, operations // REFUNDS_FOR_ONE_MORE))
    found = [Disaster(draw.uniform(0.1, 0.9), name) for name in NAMES for _ in range(each)]
    return sorted(found, key=lambda one: one.at)


class Disasters:
    """One after the other, each when its share of the refunds is proposed."""

    def __init__(self, here: House, progress: Progress, seed: int) -> None:
        self.here, self.progress = here, progress
        self.to_come = foreseen(seed, progress.operations)
        self.reader = Reader(here.database)

    def run(self) -> None:
        """Returns when all have happened or the storm is over."""
        for each in self.to_come:
            while self.progress.share < each.at and not self.progress.over.is_set():
                self.progress.over.wait(LOOK_SECONDS)
            if self.progress.over.is_set():
                break
            getattr(self, f"_{each.name}")()
            self.progress.happened(each.name)
        self.reader.close()

    def _database_crashed(self) -> None:
        self.here.crash_database()

    def _provider_killed(self) -> None:
        """Connections are refused, then the same book goes on."""
        self.here.kill_provider()
        self.progress.over.wait(1)
        self.here.bring_provider_back()

    def _broker_wiped(self) -> None:
        self.here.forget_broker()

    def _messages_doubled(self) -> None:
        """Every bell three times, for all that is on its way."""
        self._ring(LIVING, TASKS, times=3)

    def _old_messages(self) -> None:
        """Bells of last week, for what has long ended, and for what has not."""
        self._ring(ENDED, TASKS, age_seconds=WEEK_SECONDS)
        self._ring(LIVING, MONEY, age_seconds=WEEK_SECONDS)

    def _ring(
        self, which: str, tasks: tuple[str, ...], *, times: int = 1, age_seconds: int = 0
    ) -> None:
        ids = [row["id"] for row in self.reader.rows(which)]
        told = [[task, each, times, age_seconds] for each in ids for task in tasks]
        file = self.here.run_dir / "bells.json"
        file.write_text(json.dumps(told))
        self.here.run("-m", "tests.storm.bells", str(file))


_ACTS: tuple[Callable[[Disasters], None], ...] = (
    Disasters._database_crashed,
    Disasters._provider_killed,
    Disasters._broker_wiped,
    Disasters._messages_doubled,
    Disasters._old_messages,
)
NAMES = tuple(each.__name__.removeprefix("_") for each in _ACTS)
