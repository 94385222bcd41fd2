"""The workers of a replay: those that send, and those that find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from django.db import connection
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.domain.errors import CommitUnknown
from refunds.models import Operation
from tests.cast import Cast
from tests.model.replay.crew import Crew, Worker, this_worker
from tests.model.replay.eyes import Eyes
from tests.model.replay.meddling import (
    hears_nothing_of_its_claim,
    loses_its_claim,
    stands_before_its_claim,
)
from tests.model.replay.stage import TICK_SECONDS, flight_seconds
from tests.model.replay.traces import Trace
from tests.model.replay.wire import BEGINS, CHECKED, LOOKS, READS_ON, READY, WAITS, Wire
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere
from tests.simulation.witnesses import Witness

ASKS = "asks"


class Senders:
    """Each verb returns what became of it, or nothing where it was passed over."""

    operation: Operation
    eyes: Eyes

    def __init__(
        self, trace: Trace, provider: SandboxHere, cast: Cast, crew: Crew, clock: Clock
    ) -> None:
        self.trace, self.provider, self.cast, self.crew, self.clock = (
            trace,
            provider,
            cast,
            crew,
            clock,
        )
        self.witness = Witness()
        self.wire = Wire(provider, clock, self.witness.about_to_write, flight_seconds(trace))
        self.bells: list[tuple[str, str]] = []
        self.told: list[str] = []
        self.page_version = 0
        self.lost_a_commit = False
        self.sleepers: list[Worker] = []
        self.to_send: list[Worker] = []

    def _fresh(self) -> Operation:
        return Operation.objects.select_related("order").get(pk=self.operation.pk)

    def _ticks(self, count: str) -> str:
        self.clock.move(int(count) * TICK_SECONDS)
        return "done"

    def _sends(self, name: str, how: str) -> object:
        worker = self.crew.named.get(name)
        if worker is not None and worker.stands == BEGINS:
            worker.go_on()
            return worker.stands or worker.said
        job = {
            "begins to send": lambda: self._send(stands_before_its_claim),
            "sends, its commit lost": lambda: self._send(loses_its_claim),
            "sends, its commit unacknowledged": lambda: self._send(hears_nothing_of_its_claim),
            "sends": lambda: self._send(None),
        }[how]
        return self._starts(name, job)

    def _starts(self, name: str, job: Callable[[], object]) -> object:
        worker = self.crew.free(name)
        self.to_send = [each for each in self.to_send if each is not worker]
        worker.begin(job)
        return worker.stands or worker.said

    def _send(self, meddle: Callable[..., Any] | None) -> object:
        if self.lost_a_commit:
            connection.close()
        try:
            if meddle is None:
                return dispatch.send(str(self.operation.pk))
            with connection.execute_wrapper(meddle):
                return dispatch.send(str(self.operation.pk))
        except CommitUnknown:
            return "commit unknown"

    def _at(self, name: str, *places: str) -> Worker | None:
        worker = self.crew.named.get(name)
        return worker if worker is not None and worker.stands in places else None

    def _checks(self, name: str) -> object:
        if worker := self._at(name, READY):
            worker.go_on(CHECKED)
            return worker.stands or worker.said
        return None

    def _writes(self, name: str, request: str) -> object:
        if worker := self._at(name, READY, CHECKED):
            worker.go_on()
            if worker.stands == WAITS:
                self.wire.takes_off(request, worker.found)
                worker.found = {"request": request, "answer": None, "heard": None}
            return worker.stands or worker.said
        return None

    def _cannot_write(self, name: str) -> object:
        """It knows so now, and says so when it reports."""
        if worker := self._at(name, READY):
            worker.found = {"request": "", "answer": httpx.ConnectError("refused")}
            return "knows"
        return None

    def _hears(self, name: str) -> object:
        worker = self._at(name, WAITS)
        if worker is None or worker.found["answer"] is None:
            return None
        worker.found["heard"] = worker.found["answer"]
        return "has it in hand"

    def _gives_up(self, name: str) -> object:
        if worker := self._at(name, WAITS):
            worker.found["answer"] = worker.found["heard"] = httpx.ReadTimeout("silence")
            return "done"
        return None

    def _reports(self, name: str) -> object:
        worker = self._at(name, WAITS, READY)
        if worker is None or (worker.stands == READY and not worker.found):
            return None
        worker.go_on(worker.found["answer"] or httpx.ReadTimeout("silence"))
        return worker.stands or worker.said

    def _asks(self, name: str) -> object:
        reconciler.end_leases(timezone.now(), batch_max=20)
        return self._starts(name, self._look_up)

    def _look_up(self) -> object:
        worker = this_worker()
        assert worker is not None
        worker.stand(ASKS)
        said: object = reconciler.look_up(self.operation.pk)
        for task, named in worker.bells:
            said = self._hear(task, named) or said
        if self._fresh().state == states.AUTHORIZED and worker in self.to_send:
            return dispatch.send(str(self.operation.pk))
        return said

    def _hear(self, task: str, named: str) -> object:
        match task.rpartition(".")[2]:
            case "send":
                return dispatch.send(named)
            case "resend":
                return dispatch.resend(named)
        return None

    def _sees(self, name: str) -> object:
        """The lookup begins, and has its page; nothing of it is stored yet."""
        worker = self._at(name, ASKS)
        if worker is None or self.trace.provider.lookup == "none":
            return worker and "there is nothing to ask"
        worker.go_on()
        if worker.stands == LOOKS:
            worker.found = self.provider.door.handle_request(worker.found)
        return worker.stands and "has it in hand"

    def _decides(self, name: str, what: str) -> object:
        """Where our own sender knew already that nothing left, what was looked up is sent as what
        is due; the model sends it from there again, too."""
        worker = self._at(name, ASKS, LOOKS)
        if worker is None:
            return None
        if what == "to send again":
            self.to_send.append(worker)
        self._goes_on_looking(worker)
        return worker.stands or worker.said

    def _goes_on_looking(self, worker: Worker) -> None:
        """With the page it has seen, and whatever it reads besides."""
        while worker.stands in (ASKS, LOOKS, READS_ON):
            page = worker.found
            if isinstance(page, httpx.Request):
                page = self.provider.door.handle_request(page)
            worker.found = READS_ON
            worker.go_on(page)
