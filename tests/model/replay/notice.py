"""Plays a trace of notices about one refund: out of order, doubled, their readers killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from django.db import connection
from django.utils import timezone

from reconciliation import notices, reconciler
from reconciliation.models import Notice
from refunds import dispatch
from refunds.models import Operation
from tests import build
from tests.cast import Cast
from tests.model.replay.crew import Crew, this_worker
from tests.model.replay.meddling import stores_no_notice
from tests.model.replay.script import Script
from tests.model.replay.stage import ACCOUNT, TICK_SECONDS, flight_seconds, playing
from tests.model.replay.traces import NoticeTrace
from tests.model.replay.wire import LOOKS, READS_ON, READY, WAITS, Wire
from tests.notices.telling import as_shown, plain_body, tell
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere
from tests.simulation.witnesses import Witness

_ENDS = {"succeeded": {"succeeded"}, "failed": {"failed", "returned"}}
_STEPS_TO_REST = 12


@dataclass
class NoticePlayer:
    trace: NoticeTrace
    provider: SandboxHere
    cast: Cast
    crew: Crew
    clock: Clock
    told: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.frame = self.trace.frame()
        self.witness = Witness()
        self.wire = Wire(
            self.provider, self.clock, self.witness.about_to_write, flight_seconds(self.frame)
        )
        self.bells: list[tuple[str, str]] = []
        self.bodies: dict[str, bytes] = {}
        self.heard: set[str] = set()
        self._script = Script(
            {
                r"the refund turns (\w+)": self._turns,
                r"(n\d) comes": self._comes,
                r"(n\d) comes while nothing can be stored": self._comes_in_vain,
                r"(n\d) is read": self._is_read,
                r"what (n\d) read is stored": self._stored,
                r"(n\d)'s reader dies": self.crew.dies,
                r"our own answer is recorded": self._recorded,
            }
        )

    def play(self, book: Path) -> list[str]:
        del book  # asked through the provider's own door
        with playing(
            self.frame, self.provider, self.wire, self.clock, self.bells, self.crew, self.witness
        ):
            self.provider.configure(ACCOUNT, settle_seconds=1_000_000)
            self._begin()
            for step in self.trace.steps:
                self._step(step)
            self._rest()
            return [*self.witness.wrong, *self.wrong]

    def _begin(self) -> None:
        """Sent, and accepted: the provider works on it. Its first notice says so."""
        self.provider.payment("pi_4821", 12900, account=ACCOUNT)
        build.order("4821", account=ACCOUNT)
        self.operation = build.authorized(self.cast.foxtrot, self.cast.cleo, amount_minor=4000)
        sender = self.crew.free("sender")
        sender.begin(lambda: dispatch.send(str(self.operation.pk)))
        assert sender.stands == READY
        sender.go_on()
        self.wire.takes_off("r1", sender.found)
        self.answer = self.wire.land(self.wire.flying[0])
        if self.trace.answered:
            self._recorded()
        self._notice("n0")

    def _refund(self) -> dict[str, Any]:
        [refund] = self.provider.refunds(ACCOUNT)
        return refund

    def _notice(self, name: str) -> None:
        shown = as_shown(self._refund(), "pi_4821", "USD")
        self.bodies[name] = plain_body(f"evt_{name}", shown)

    def _step(self, step: str) -> None:
        said = self._script.said(step)
        self.told.append(f"{step}: {said or 'passed over'} [{self._state()}]")

    def _state(self) -> str:
        return Operation.objects.get(pk=self.operation.pk).state

    def _turns(self, status: str) -> object:
        self.provider.control("POST", f"/refunds/{self._refund()['id']}/status", {"to": status})
        self._notice(f"n{len(self.bodies)}")
        return "turned"

    def _comes(self, name: str) -> object:
        """It is handed in; the provider takes it for heard when the door says so."""
        said = tell(self.bodies[name], account=ACCOUNT)
        if said.status == 200:
            self.heard.add(name)
        return said.status

    def _comes_in_vain(self, name: str) -> object:
        with connection.execute_wrapper(stores_no_notice):
            return self._comes(name)

    def _is_read(self, name: str) -> object:
        """A worker hears of it and asks the provider; what it is shown it holds in its hands."""
        stored = Notice.objects.filter(event_id=f"evt_{name}").first()
        if stored is None:
            return None

        def job() -> object:
            said: object = notices.apply(stored.pk)
            worker = this_worker()
            for task, _ in [] if worker is None else worker.bells:
                if task.endswith("look_up"):
                    said = reconciler.look_up(self.operation.pk)
            return said

        worker = self.crew.free(name)
        worker.begin(job)
        if worker.stands in (LOOKS, READS_ON):
            worker.found = self.provider.door.handle_request(worker.found)
        return worker.stands or worker.said

    def _stored(self, name: str) -> object:
        worker = self.crew.named.get(name)
        if worker is None or not worker.stands:
            return None
        while worker.stands in (LOOKS, READS_ON):
            page = worker.found
            if isinstance(page, httpx.Request):
                page = self.provider.door.handle_request(page)
            worker.found = READS_ON
            worker.go_on(page)
        return worker.said

    def _recorded(self) -> object:
        sender = self.crew.named["sender"]
        if sender.stands != WAITS:
            return None
        sender.go_on(self.answer)
        return sender.said

    def _rest(self) -> None:
        """What was not heard is told again, what is due is looked up; then both must agree."""
        for name in [*self.crew.named]:
            self._stored(name)
        self._recorded()
        for name in sorted(self.bodies.keys() - self.heard):
            self._comes(name)
        for _ in range(_STEPS_TO_REST):
            self.clock.move(TICK_SECONDS)
            notices.ring_for_due(timezone.now(), batch_max=20)
            bells, self.bells[:] = [*self.bells], []
            for task, named in bells:
                if task.endswith("apply_notice"):
                    notices.apply(int(named))
                elif task.endswith("look_up"):
                    reconciler.look_up(self.operation.pk)
        status, state = self._refund()["status"], self._state()
        if state not in _ENDS[status]:
            self.wrong.append(f"the provider ended {status}, the ledger says {state}")
        if Notice.objects.filter(applied_at=None).exists():
            self.wrong.append("a notice was stored and never applied")
