"""What befalls everybody at once: the database crashes or loses its newest rows, the broker forgets,
messages come again, a group of senders is cut off.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.storm.house import SENDERS, House
from tests.storm.lost_tail import LostTail
from tests.storm.progress import NO_DISASTER, Progress
from tests.storm.reader import Reader

LOOK_SECONDS = 0.2
REFUNDS_FOR_ONE_MORE, EACH_MAX = 100, 20
WEEK_SECONDS = 7 * 86_400
# Longer than a lease and than every quiet period.
CUT_SECONDS = 14
# A database that lost its tail costs minutes: people have to look.
REFUNDS_FOR_ONE_MORE_LOSS, LOSSES_MAX = 1000, 3
BACKUP_AGE = 0.15  # of all refunds
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
    losses = min(LOSSES_MAX, max(1, operations // REFUNDS_FOR_ONE_MORE_LOSS))
    found += [Disaster(draw.uniform(0.1, 0.9), PROMOTED) for _ in range(losses)]
    found += _backups(draw, losses)
    return sorted(found, key=lambda one: one.at)


def _backups(draw: random.Random, count: int) -> Iterator[Disaster]:
    """Taken, and restored some refunds later, before the next one is taken."""
    for number in range(count):
        taken = 0.1 + 0.8 * number / count + draw.uniform(0, 0.8 / count - BACKUP_AGE)
        yield Disaster(taken, TAKEN)
        yield Disaster(taken + BACKUP_AGE, RESTORED)


class Disasters:
    """One after the other, each when its share of the refunds is proposed."""

    def __init__(self, here: House, progress: Progress, seed: int, *, losses: bool) -> None:
        self.here, self.progress = here, progress
        all_kinds = foreseen(seed, progress.operations)
        self.to_come = [each for each in all_kinds if losses or each.name not in LOSSES]
        self.draw = random.Random(f"cut-{seed}")
        self.reader = Reader(here.database)
        self.lost_tail = LostTail(here, progress)

    def run(self) -> None:
        """Returns when all have happened or the storm is over."""
        for each in self.to_come:
            self.progress.next_disaster = each.at
            while self.progress.share < each.at and not self.progress.over.is_set():
                self.progress.over.wait(LOOK_SECONDS)
            if self.progress.over.is_set():
                break
            getattr(self, f"_{each.name}")()
            self.progress.happened(each.name)
        self.progress.next_disaster = NO_DISASTER
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

    def _group_cut_off(self) -> None:
        """One group of senders reaches nothing, for longer than its leases; then it is back."""
        apart = self.here.networks.get(self.draw.choice(SENDERS))
        if apart is None:
            return
        apart.cut_off()
        self.progress.over.wait(CUT_SECONDS)
        apart.let_back()

    def _backup_taken(self) -> None:
        self.lost_tail.take_backup()

    def _backup_restored(self) -> None:
        self.lost_tail.restore_backup()

    def _standby_promoted(self) -> None:
        self.lost_tail.promote_standby()

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
    Disasters._group_cut_off,
)
NAMES = tuple(each.__name__.removeprefix("_") for each in _ACTS)
LOSSES = TAKEN, RESTORED, PROMOTED = "backup_taken", "backup_restored", "standby_promoted"
