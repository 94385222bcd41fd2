"""What people, senders and the provider do in a trace of several refunds of one order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx
from django.db import Error, connection, transaction
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch, withdrawal
from refunds.consent import Shown
from refunds.models import Operation
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.ledger.rulings import asked, ruled, signed
from tests.model.replay.crew import Crew
from tests.model.replay.meddling import stands_before_its_claim
from tests.model.replay.pictures import Picture, picture
from tests.model.replay.stage import ACCOUNT, TICK_SECONDS, flight_seconds
from tests.model.replay.traces import OrderTrace, Trace
from tests.model.replay.wire import BEGINS, READY, WAITS, Wire
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere
from tests.simulation.witnesses import Witness

UNIT_MINOR = 1000
PAYMENT = "pi_4821"


@dataclass
class OrderActs:
    """Each verb returns what became of it, or nothing where it was passed over."""

    trace: OrderTrace
    provider: SandboxHere
    cast: Cast
    crew: Crew
    clock: Clock
    told: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.frame: Trace = self.trace.frame()
        self.captured_minor = self.trace.captured * UNIT_MINOR + len(self.trace.wants)
        self.witness = Witness()
        self.wire = Wire(
            self.provider, self.clock, self.witness.about_to_write, flight_seconds(self.frame)
        )
        self.bells: list[tuple[str, str]] = []
        self.made_elsewhere: dict[str, Any] | None = None
        self.otherwise: dict[str, Any] = {}
        self.ids: dict[str, Operation] = {}
        self.pages: dict[str, tuple[Shown, Picture]] = {}
        self.pictures: dict[str, Picture] = {}
        self.attempts: dict[str, int] = {}

    def _propose(self, name: str, units: int) -> None:
        # Two equal refunds of one payment are another matter: a few cents set them apart.
        by, minor = self.cast.foxtrot, units * UNIT_MINOR + "ABC".index(name)
        self.ids[name] = build.proposed(by, amount_minor=minor)

    def _page(self, name: str) -> object:
        self.pages[name] = (build.shown(self.ids[name], tick=True), picture(self.ids[name].pk))
        return "drawn"

    def _approved_on_it(self, name: str) -> object:
        shown, seen = self.pages[name]
        approvals.approve(self.ids[name].pk, self.cast.cleo, shown)
        self.pictures[name] = seen
        return "approved"

    def _approved(self, name: str) -> object:
        self._page(name)
        return self._approved_on_it(name)

    def _newcomer(self, name: str) -> object:
        self._propose(name, self.trace.wants[2])
        return self._approved(name)

    def _proposed_at(self, name: str, units: str) -> object:
        """What is proposed never changes: another amount is another proposal."""
        withdrawal.withdraw(self.ids[name].pk, by=Caller(agent=self.cast.foxtrot))
        self._propose(name, int(units))
        return "withdrawn, and proposed anew"

    def _edited(self, name: str, units: str) -> object:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE operation SET amount_minor = %s WHERE id = %s",
                    [int(units) * UNIT_MINOR, self.ids[name].pk],
                )
        except Error as error:
            return type(error).__name__
        return "edited"

    def _ruled(self, name: str) -> object:
        case = asked(Operation.objects.get(pk=self.ids[name].pk))
        made = self.otherwise[name]
        minor = made["amount_minor"]
        first = ruled(case, self.cast.omar, "different", ref=made["id"], confirmed_minor=minor)
        signed(first, self.cast.ines)
        return "signed"

    def _begins(self, name: str) -> object:
        def job() -> object:
            with connection.execute_wrapper(stands_before_its_claim):
                return dispatch.send(str(self.ids[name].pk))

        worker = self.crew.free(name)
        worker.begin(job)
        return worker.stands or worker.said

    def _sent(self, name: str) -> object:
        worker = self.crew.free(name) if name not in self.crew.named else self.crew.named[name]
        if worker.stands == BEGINS:
            worker.go_on()
        elif not worker.stands:
            worker.begin(lambda: dispatch.send(str(self.ids[name].pk)))
        return worker.stands or worker.said

    def _writes(self, name: str) -> bool:
        worker = self.crew.named.get(name)
        if worker is None or worker.stands != READY:
            return worker is not None and worker.stands == WAITS
        worker.go_on()
        if worker.stands != WAITS:
            return False
        self.wire.takes_off(name, worker.found)
        worker.found = None
        return True

    def _paid(self, name: str) -> object:
        if not self._writes(name):
            return None
        which = self.wire.of(name)
        if which is not None:
            self.crew.named[name].found = self.wire.land(which)
        return "landed"

    def _refused(self, name: str) -> object:
        self.provider.configure(ACCOUNT, reasons_accepted=[])
        said = self._paid(name)
        self.provider.configure(ACCOUNT, reasons_accepted=None)
        return said and self._recorded(name)

    def _paid_otherwise(self, name: str, units: str) -> object:
        """The request is lost on the way, and the provider's own people refund something else."""
        if not self._writes(name):
            return None
        self.wire.flying.remove(self.wire.of(name))  # type: ignore[arg-type]
        self._by_hand(units)
        self.otherwise[name] = self.made_elsewhere
        return self._answer_lost(name)

    def _recorded(self, name: str) -> object:
        worker = self.crew.named.get(name)
        if worker is None or worker.stands != WAITS:
            return None
        worker.go_on(worker.found or httpx.ReadTimeout("silence"))
        return worker.said

    def _answer_lost(self, name: str) -> object:
        if not self._writes(name):
            return None
        worker = self.crew.named[name]
        worker.go_on(httpx.ReadTimeout("silence"))
        return worker.said

    def _looked_up(self, name: str) -> object:
        self.clock.move(TICK_SECONDS)
        reconciler.end_leases(timezone.now(), batch_max=20)
        return reconciler.look_up(self.ids[name].pk)

    def _refunds(self, name: str) -> list[dict[str, Any]]:
        marker = str(self.ids[name].pk)
        return [e for e in self.provider.refunds(ACCOUNT) if e["aftersend_operation"] == marker]

    def _comes_back(self, name: str) -> object:
        for refund in self._refunds(name):
            self.provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
        return reconciler.look_up(self.ids[name].pk)

    def _by_hand(self, units: str) -> object:
        minor = int(units) * UNIT_MINOR
        told = {"account": ACCOUNT, "payment": PAYMENT, "amount_minor": minor}
        self.made_elsewhere = self.provider.control("POST", "/external_refund", told)
        return "made"

    def _learned(self) -> object:
        if self.made_elsewhere is None:
            return None
        made = self.made_elsewhere
        return build.external_refund("4821", made["amount_minor"], ref=made["id"]).version

    def _disputed(self) -> object:
        build.order(
            "4821",
            account=ACCOUNT,
            captured_minor=self.captured_minor,
            state="disputed",
        )
        return "fed"
