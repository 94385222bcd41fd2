"""The wire between the product and the provider, on which anything may happen to a call.

While a call travels, others get their turn: whatever can happen between two of its bytes happens
here, in one thread, and again in the same way for the same seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, override

import httpx

from tests.simulation.clock import Clock
from tests.simulation.provider import SandboxHere
from tests.simulation.weather import Weather

# Longer than any lease of the tests' limits.
_PAST_THE_LEASE_SECONDS = 75
# How soon a sender gives up whose request is still on its way.
_SOON_SECONDS = (0.1, 0.4, 1.5, 30)
# An account that promises no bound keeps a request for longer than every figure of a contract.
_LATEST_SECONDS = 1500


class Killed(BaseException):
    """The process that called is gone: nothing of it runs any more."""


@dataclass(order=True)
class Flying:
    """A request whose sender gave up, and the instant of the schedule at which it lands."""

    at: float
    request: httpx.Request = field(compare=False)


class _Stream:
    def get_extra_info(self, name: str) -> None:
        return None


@dataclass
class Wire(httpx.BaseTransport):
    """Every call of the product goes through `handle_request`."""

    provider: SandboxHere
    weather: Weather
    others: Callable[[], None]
    passes: Callable[[float], None]
    about_to_write: Callable[[httpx.Request], None]
    clock: Clock
    calm: bool = False
    flying: list[Flying] = field(default_factory=list)
    fates: Counter[str] = field(default_factory=Counter)
    profiles: dict[str, Any] = field(default_factory=dict)

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reads = request.method == "GET"
        fate = "good" if self.calm else self.weather.fate(reads)
        self.fates[f"{'read' if reads else 'send'} {fate}"] += 1
        trace = request.extensions["trace"]
        if fate == "refused":
            raise httpx.ConnectError("refused", request=request)
        self._others()
        trace("connection.connect_tcp.complete", {"return_value": _Stream()})
        connected = self.clock.seconds
        if fate == "paused":
            self.passes(self.weather.passing_seconds())
            self._others()
        trace("http11.send_request_headers.started", {})
        if not reads:
            self.about_to_write(request)
        if fate == "killed_before":
            raise Killed
        if fate == "lost" or self._closed_meanwhile(request, connected):
            raise httpx.ReadError("reset", request=request)
        return self._travels(request, fate)

    def _travels(self, request: httpx.Request, fate: str) -> httpx.Response:
        if fate == "late":
            self._takes_off(request)
            self.passes(self.weather.dice.choice(_SOON_SECONDS))
            self._others()
            raise httpx.ReadTimeout("silence", request=request)
        if fate == "error":
            return httpx.Response(503, stream=httpx.ByteStream(b"try later"))
        answer = self.provider.door.handle_request(request)
        if fate == "slow":
            self._others()
            self.passes(_PAST_THE_LEASE_SECONDS)
        self._others()
        if fate == "killed_after":
            raise Killed
        if fate == "answer_lost":
            raise httpx.RemoteProtocolError("closed", request=request)
        if fate == "error_after":
            return httpx.Response(502, stream=httpx.ByteStream(b"<html>bad gateway</html>"))
        if fate == "passed_on_429":
            return httpx.Response(429, stream=httpx.ByteStream(b"slow down"))
        return answer

    def _others(self) -> None:
        if not self.calm and self.weather.dice.random() < self.weather.crowd:
            self.others()

    def _profile(self, request: httpx.Request) -> dict[str, Any]:
        if not self.profiles:
            self.profiles = self.provider.control("GET", "/accounts")
        found: dict[str, Any] = self.profiles[request.url.path.split("/")[2]]
        return found

    def _closed_meanwhile(self, request: httpx.Request, connected: float) -> bool:
        """The provider closes a silent connection after the time it promises."""
        patience = self._profile(request)["idle_close_seconds"]
        return patience is not None and self.clock.seconds - connected > patience

    def _takes_off(self, request: httpx.Request) -> None:
        bound = self._profile(request)["flight_seconds_max"]
        longest = _LATEST_SECONDS if bound is None else bound
        delay = self.weather.dice.uniform(0, longest)
        request.read()
        self.flying.append(Flying(self.clock.seconds + delay, request))

    def land(self) -> None:
        """What is due by now arrives, in its order; nobody hears the answers."""
        for each in sorted(self.flying):
            if each.at <= self.clock.seconds:
                self.flying.remove(each)
                self.provider.door.handle_request(each.request)
