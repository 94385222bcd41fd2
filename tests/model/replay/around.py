"""What happens around the workers of a replay: the way, the provider, the sweeps, and people."""

from __future__ import annotations

import httpx
from django.utils import timezone

from reconciliation import reconciler
from refunds import accepting, approvals, withdrawal
from refunds.domain import states
from refunds.models import AcceptedFact
from refunds.proposal import Caller
from tests import build
from tests.model.replay import people
from tests.model.replay.failover import forget_the_claim
from tests.model.replay.senders import Senders
from tests.model.replay.stage import ACCOUNT
from tests.model.replay.wire import WAITS

_BAD_GATEWAY = (502, "text/html", b"<html>bad gateway</html>")
_HOPS_429 = (429, "application/json", b'{"message": "slow down"}')
_UNLISTED_429 = (
    429,
    "application/json",
    b'{"error": {"code": "duplicate_request", "message": "wait"}}',
)


class Around(Senders):
    """As in Senders."""

    captured_minor: int

    def _lands(self, request: str, what: str, copy: str | None) -> object:
        which = self.wire.of(request)
        if which is None:
            return None
        replaced = None
        match what:
            case "is refused":
                self.provider.configure(ACCOUNT, reasons_accepted=[])
            case "is turned away":
                self.provider.fault("rate_429", account=ACCOUNT)
            case "pays, and a hop says 502":
                replaced = _BAD_GATEWAY
            case "pays, and says an unlisted 429":
                replaced = _UNLISTED_429
            case "pays" | "is refused as already refunded":
                pass
            case _:
                raise AssertionError(f"no such landing: {what!r}")
        answer = self.wire.land(which, a_copy_stays=copy is not None)
        if what == "is refused":
            self.provider.configure(ACCOUNT, reasons_accepted=None)
        self._answered(request, answer if replaced is None else _response(*replaced))
        return f"answered {answer.status_code}"

    def _answered(self, request: str, answer: httpx.Response) -> None:
        for worker in self.crew.standing():
            if worker.stands == WAITS and worker.found["request"] == request:
                worker.found["answer"] = worker.found["heard"] or answer

    def _hop(self, request: str) -> object:
        if self.wire.of(request) is None:
            return None
        self._answered(request, _response(*_HOPS_429))
        return "done"

    def _lost(self, request: str) -> object:
        which = self.wire.of(request)
        if which is not None:
            self.wire.flying.remove(which)
        return which and "lost"

    def _stranger(self) -> object:
        told = {
            "account": ACCOUNT,
            "payment": "pi_4821",
            "amount_minor": self.operation.amount_minor,
        }
        self.provider.control("POST", "/external_refund", told)
        return "done"

    def _lease_ends(self) -> object:
        return f"{reconciler.end_leases(timezone.now(), batch_max=20)} ended"

    def _order_changes(self) -> object:
        build.order(
            "4821", account=ACCOUNT, captured_minor=self.captured_minor, return_state="received"
        )
        if self._fresh().state == states.AUTHORIZED:
            self.eyes.forbidden = "the order changed after the approval"
        return "done"

    def _withdrawn(self) -> object:
        return withdrawal.withdraw(self.operation.pk, by=Caller(person=self.cast.ada)).state

    def _page(self) -> object:
        self.page_version = self._fresh().version
        return "read"

    def _taken_back(self) -> object:
        version = self.page_version or self._fresh().version
        said = approvals.revoke(self.operation.pk, self.cast.cleo, version=version).state
        self.eyes.forbidden = "the approver was told that it is taken back"
        return said

    def _approved_again(self) -> object:
        approvals.approve(self.operation.pk, self.cast.cleo, build.shown(self._fresh(), tick=True))
        self.eyes.forbidden = ""
        return "approved"

    def _people_say_no(self) -> object:
        return people.say_it_never_happened(self._fresh(), self.cast)

    def _acceptance_withdrawn(self) -> object:
        for row in AcceptedFact.objects.filter(withdrawn_at=None):
            accepting.withdraw(row.pk, by=self.cast.ines, because="The trace says so.")
        self.eyes.forbidden = "what it rests on was withdrawn"
        return "done"

    def _failover(self) -> object:
        self.lost_a_commit = True
        return forget_the_claim(self.operation.pk)


def _response(status: int, kind: str, content: bytes) -> httpx.Response:
    return httpx.Response(status, headers={"Content-Type": kind}, stream=httpx.ByteStream(content))
