"""What workers and sweeps do in the schedules, each by the product's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from reconciliation import account_sweep, case_sweep, notices, probes, reconciler, tasks
from refunds import dispatch, ledger
from refunds.domain import states
from refunds.models import Operation
from tests.simulation.weather import Weather

MOVES = frozenset({states.SUBMITTING, states.PENDING, states.UNKNOWN})
_BATCH_MAX = 50


@dataclass
class Machines:
    """`bells` are the messages that rang and that nobody has heard yet."""

    weather: Weather
    passes: Callable[[float], None]
    bells: list[tuple[str, str]] = field(default_factory=list)

    def acts(self) -> dict[str, Callable[[], object]]:
        return {
            "send": self.send,
            "bell": self.bell,
            "look": self.look,
            "end_leases": lambda: reconciler.end_leases(timezone.now(), batch_max=_BATCH_MAX),
            "expire": lambda: ledger.expire(timezone.now(), batch_max=_BATCH_MAX),
            "probe": lambda: probes.probe_accounts(timezone.now()),
            "lists": lambda: account_sweep.ring_for_due(timezone.now()),
            "notice_sweep": self.notice_sweep,
            "tend": lambda: case_sweep.tend(timezone.now()),
            "time": self.time,
        }

    def send(self) -> object:
        """Now and then a message that came a second time, or too late."""
        dice = self.weather.dice
        operation_id = self._one(states.AUTHORIZED) if dice.random() < 0.8 else self._one()
        return operation_id and dispatch.send(str(operation_id))

    def bell(self) -> object:
        """A message is lost, heard twice, or heard in another order."""
        if not self.bells:
            return None
        task, named = self.bells.pop(self.weather.dice.randrange(len(self.bells)))
        fate = self.weather.dice.random()
        if fate > 0.8:
            self.bells.append((task, named))
        return "lost" if fate < 0.2 else hear(task, named)

    def look(self) -> object:
        operation_id = self._one(*MOVES) or self._one()
        return operation_id and tasks.look_up(str(operation_id))

    def notice_sweep(self) -> object:
        return notices.ring_for_due(timezone.now(), batch_max=_BATCH_MAX)

    def time(self) -> object:
        seconds = self.weather.passing_seconds()
        self.passes(seconds)
        return seconds

    def round(self) -> Iterator[Callable[[], object]]:
        """One round of everything that is due, for a time in which nothing goes wrong."""
        now = timezone.now() + timedelta(milliseconds=1)
        acts = self.acts()
        yield lambda: reconciler.end_leases(now, batch_max=_BATCH_MAX)
        yield lambda: probes.probe_accounts(now)
        yield lambda: ledger.expire(now, batch_max=_BATCH_MAX)
        yield lambda: case_sweep.tend(now)
        yield from (acts[name] for name in ("lists", "notice_sweep"))
        for sendable in dispatch.ready(_BATCH_MAX):
            yield lambda one=sendable: dispatch.send(str(one))  # type: ignore[misc]
        for due in reconciler.due(now, batch_max=settings.LIMITS.sweep_batch_max):
            yield lambda one=due: tasks.look_up(str(one))  # type: ignore[misc]
        rung, self.bells[:] = [*self.bells], []
        for task, named in rung:
            yield lambda t=task, n=named: hear(t, n)  # type: ignore[misc]

    def _one(self, *wanted: str) -> UUID | None:
        """One of the refunds in these states."""
        found = Operation.objects.filter(state__in=wanted) if wanted else Operation.objects.all()
        ids = sorted(found.values_list("pk", flat=True))
        return self.weather.dice.choice(ids) if ids else None


def hear(task: str, named: str) -> object:
    """What a worker does that this message reaches."""
    module, _, name = task.rpartition(".")
    return getattr(import_module(module), name)(named)
