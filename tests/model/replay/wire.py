"""The wire of a replay: each worker's calls stop at each of their bytes; requests land when told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import override

import httpx

from tests.model.replay.crew import this_worker
from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere

# Where a worker can stand, in the order of a call.
BEGINS, READY, CHECKED, WAITS = "begins", "ready", "checked", "waits"
LOOKS, READS_ON = "looks", "reads on"


class _Stream:
    def get_extra_info(self, name: str) -> None:
        return None


@dataclass
class Flying:
    """A request that was written. `name` is the trace's; `at` when it was, `lands` when it must."""

    name: str
    request: httpx.Request
    at: float
    lands: float


@dataclass
class Wire(httpx.BaseTransport):
    """Whoever drives has no call to wait with: its own go straight through."""

    provider: SandboxHere
    clock: Clock
    about_to_write: Callable[[httpx.Request], None]
    flight_seconds: float
    flying: list[Flying] = field(default_factory=list)

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return self._read(request)
        return self._write(request)

    def _read(self, request: httpx.Request) -> httpx.Response:
        _connected(request)
        _starts(request)
        worker = this_worker()
        if worker is None:
            return self.provider.door.handle_request(request)
        # The first page is what the trace speaks of; whatever it needs besides follows at once.
        where = READS_ON if worker.found == READS_ON else LOOKS
        answer: httpx.Response = worker.stand(where, request)
        return answer

    def _write(self, request: httpx.Request) -> httpx.Response:
        worker = this_worker()
        if worker is None:
            _connected(request)
            _starts(request)
            self.about_to_write(request)
            return self.provider.door.handle_request(request)
        how = worker.stand(READY)
        _connected(request)
        _starts(request)
        if how == CHECKED:
            worker.stand(CHECKED)
        self.about_to_write(request)
        request.read()
        answer: httpx.Response = worker.stand(WAITS, request)
        return answer

    def takes_off(self, name: str, request: httpx.Request) -> None:
        now = self.clock.seconds
        self.flying.append(Flying(name, request, now, now + self.flight_seconds))

    def of(self, name: str) -> Flying | None:
        """The request of this name, while it is on its way."""
        return next((each for each in self.flying if each.name == name), None)

    def land(self, which: Flying, *, a_copy_stays: bool = False) -> httpx.Response:
        """It arrives; the provider's answer, which may find nobody."""
        if not a_copy_stays:
            self.flying.remove(which)
        return self.provider.door.handle_request(which.request)


def _connected(request: httpx.Request) -> None:
    request.extensions["trace"]("connection.connect_tcp.complete", {"return_value": _Stream()})


def _starts(request: httpx.Request) -> None:
    """The last moment before the first byte; raises where the product will not send it any more."""
    request.extensions["trace"]("http11.send_request_headers.started", {})
