"""The engine at work on one database: a backlog that is counted, a burst, a steady rate."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from tests.bench import machine, server
from tests.bench.figures import percentile
from tests.bench.ground import CLIENT, ROOT, SENDER, WORKERS
from tests.bench.place import Place, ended
from tests.walkthrough.programs import Program

WARM_UPS = 64
PATIENCE_SECONDS = 600
_WARM = 10_000_000
# Ids are ordered by time: what was proposed since then is one short range of the primary key.
_DONE = "SELECT count(*) FROM aftersend.operation WHERE id > %s AND state = 'succeeded'"
_TIMES = """
SELECT extract(epoch FROM settled_at - created_at)::float8 * 1000 FROM aftersend.operation
WHERE id > %s AND state = 'succeeded'"""
_LOOK_SECONDS = 0.05


class Hand:
    """A process that does on one database what it is told (see `hand`)."""

    def __init__(self, place: Place, name: str) -> None:
        self._environment = place.ground(name).environment(CLIENT)
        self._running = place.child([sys.executable, "-m", "tests.bench.hand"], self._environment)

    @property
    def pid(self) -> int:
        return self._running.pid

    def do(self, act: str, **told: Any) -> Any:
        """Its answer. Raises RuntimeError where it ended instead of answering."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        self._running.stdin.write(json.dumps(told | {"do": act}) + "\n")
        self._running.stdin.flush()
        line = self._running.stdout.readline()
        if not line:
            raise RuntimeError(f"{act} was not answered; its words are above")
        return json.loads(line)

    def end(self) -> None:
        ended(self._running)


@dataclass
class Engine:
    """The product's workers on one database, and whoever proposes there. `orders` bounds how many
    operations may be proposed in all; each one has an order of its own."""

    place: Place
    name: str
    orders: int
    by_lead: bool
    next_op: int = 1

    def __post_init__(self) -> None:
        self.hand = Hand(self.place, self.name)
        self.programs: dict[str, Program] = {}
        self._warm = _WARM

    @contextmanager
    def running(self) -> Iterator[None]:
        """Its workers run while the block does, warm: each has sent something already."""
        ground = self.place.ground(self.name)
        for name, (role, command) in ground.commands().items():
            program = self.place.program(f"{self.name}-{name}", command, ground.environment(role))
            program.start()
            self.programs[name] = program
        try:
            with self.place.server(self.name) as database:
                since = uuid7()
                self._propose(self._warm, WARM_UPS)
                self._settled(database, since, WARM_UPS)
                self._warm += WARM_UPS
            yield
        finally:
            for program in self.programs.values():
                program.ask_to_stop()
            for program in self.programs.values():
                program.end()
            self.programs.clear()

    def counts(self, count: int) -> dict[str, Any]:
        """What one operation costs in the database, apart from everything that time costs: the
        proposals come while no worker runs, and then the senders work alone."""
        with self.place.server() as watch, self.place.server(self.name) as database:
            since, first = uuid7(), self._take(count)
            with self._asleep(*WORKERS):
                mark = server.Mark.of(watch)
                self._propose(first, count)
                proposed = server.written(watch, mark)
            with self._asleep("lookups", "beat"):
                mark = server.Mark.of(watch)
                server.forget_statements(watch)
                self._settled(database, since, count)
                sent = server.written(watch, mark)
                trips = server.round_trips(watch, SENDER)
                dearest = server.statements(watch, SENDER)
        return {
            "proposal_write_tx": proposed.transactions / count,
            "send_write_tx": sent.transactions / count,
            "wal_bytes": (proposed.wal_bytes + sent.wal_bytes) / count,
            "send_wal_bytes": sent.wal_bytes / count,
            "images_bytes": (proposed.images_bytes + sent.images_bytes) / count,
            "round_trips": trips / count,
            "statements": dearest,
        }

    def burst(self, count: int) -> dict[str, float]:
        """`count` operations as fast as four threads can propose them."""
        since, first = uuid7(), self._take(count)
        sample = _Sampler(self._workers)
        with self.place.server(self.name) as database:
            cpu, busy = self._cpu(), machine.busy_seconds()
            began = time.perf_counter()
            with sample:
                proposing = self._propose(first, count)
                self._settled(database, since, count)
            seconds = time.perf_counter() - began
            spent = {who: used - cpu[who] for who, used in self._cpu().items()}
            other = (machine.busy_seconds() - busy - sum(spent.values())) / seconds
        per_1000 = 1000 / count
        return {
            "ops_s": count / seconds,
            "proposed_s": count / proposing["seconds"],
            "cpu_s_1000": sum(spent.values()) * per_1000,
            "worker_cpu_s_1000": spent["workers"] * per_1000,
            "postgres_cpu_s_1000": spent["postgres"] * per_1000,
            "client_cpu_s_1000": spent["client"] * per_1000,
            "memory_mb": sample.peak_mb,
            "other_cores": max(0.0, other),
        }

    def rate(self, count: int, per_second: float) -> dict[str, float]:
        """From the proposal to the recorded result, while so many come each second; ms."""
        since, first = uuid7(), self._take(count)
        with self.place.server(self.name) as database:
            self._propose(first, count, per_second)
            self._settled(database, since, count)
            ms = [row[0] for row in database.execute(_TIMES, [since])]
        return {f"p{share}": percentile(ms, share / 100) for share in (50, 95, 99)}

    def plain_admin(self, repeats: int) -> list[float]:
        """Milliseconds of the first page of Django's own admin over the same operations."""
        url = self.place.ground(self.name).database
        command = [sys.executable, "-m", "tests.bench.plain_admin", url]
        visitor = self.place.child(command, dict(os.environ) | {"PYTHONPATH": str(ROOT)})
        assert visitor.stdin is not None
        assert visitor.stdout is not None
        try:
            visitor.stdin.write(f"{repeats}\n")
            visitor.stdin.flush()
            return [float(each) for each in json.loads(visitor.stdout.readline())]
        finally:
            ended(visitor)

    def _take(self, count: int) -> int:
        first = self.next_op
        self.next_op += count
        assert self.next_op <= self.orders + 1, "more orders must be made for so many operations"
        return first

    def _propose(self, first: int, count: int, per_second: float = 0) -> Any:
        told = self.hand.do(
            "submit",
            first=first,
            count=count,
            by_lead=self.by_lead,
            orders=self.orders,
            per_second=per_second,
        )
        if told["failures"]:
            raise RuntimeError(f"not proposed: {told['failures'][0]}")
        return told

    def _settled(self, database: psycopg.Connection[Any], since: UUID, count: int) -> None:
        """Until so many that were proposed since then are recorded. Raises TimeoutError, and
        RuntimeError when a worker ended."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            row = database.execute(_DONE, [since]).fetchone()
            if row is not None and row[0] >= count:
                return
            for name, program in self.programs.items():
                if not program.runs():
                    raise RuntimeError(f"{name} ended: {program.said()[-2000:]}")
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{count} refunds: not all recorded in {PATIENCE_SECONDS} s")
            time.sleep(_LOOK_SECONDS)

    @contextmanager
    def _asleep(self, *names: str) -> Iterator[None]:
        """SIGSTOP these programs while the block runs: alive, and doing nothing."""
        pids = machine.called(self.programs["workers"].pid, names)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def _workers(self) -> list[int]:
        return [program.pid for program in self.programs.values()]

    def _cpu(self) -> dict[str, float]:
        postgres, bell = self.place.database.pid(), self.place.bell.pid()
        assert postgres is not None
        assert bell is not None
        own = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "workers": machine.cpu_seconds(self._workers()),
            "postgres": machine.cpu_seconds([postgres]),
            "broker": machine.cpu_seconds([bell]),
            "provider": machine.cpu_seconds([self.place.provider_pid]),
            "client": machine.cpu_seconds([self.hand.pid]),
            "measuring": own.ru_utime + own.ru_stime,
        }


class _Sampler:
    """The highest memory of some processes while the block runs."""

    SECONDS = 0.3

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        self.peak_mb = 0.0
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._watching.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watching.join()

    def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, machine.memory_mb(self._pids()))
            if self._over.wait(self.SECONDS):
                return
