"""The wire between the product and the provider, on which anything may happen to a call.

While a call travels, others get their turn: whatever can happen between two of its bytes happens
here, in one thread, and again in the same way for the same seed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, override
from urllib.parse import parse_qsl

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

_INTENT = "payment_intent"


class Killed(BaseException):
    """The process that called is gone: nothing of it runs any more."""


@dataclass(order=True)
class Flying:
    """A request whose sender gave up, and the instant of the schedule at which it lands."""

    at: float
    request: httpx.Request = field(compare=False)


def _page(status: int, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    """As a stream, which is what a socket gives."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


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
    # Whether a sender sleeps after its last look at the clock, or before it.
    sleeps_late: bool = False
    naps: int = 1
    second_copy: str = "already_refunded"
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
        if fate == "paused" and not self.sleeps_late:
            self._sleeps()
        trace("http11.send_request_headers.started", {})
        if fate == "paused" and self.sleeps_late:
            self._sleeps()
        if not reads:
            self.about_to_write(request)
        if fate == "killed_before":
            raise Killed
        if fate == "lost" or self._closed_meanwhile(request, connected):
            raise httpx.ReadError("reset", request=request)
        if fate in self._turns:
            return self._turns[fate](request)
        return self._travels(request, fate)

    def __post_init__(self) -> None:
        self._turns: dict[str, Callable[[httpx.Request], httpx.Response]] = {
            "error": lambda _: _page(503, b"try later"),
            "hop_401": lambda _: _page(401, b"<html>who are you?</html>"),
            "declined": self._declined,
            "turned_away": self._turned_away,
            "already": self._already,
            "redirected": self._redirected,
            "mixed_up": self._mixed_up,
        }

    def _declined(self, request: httpx.Request) -> httpx.Response:
        """The payment is disputed while this one request is there."""
        fields = json.loads(request.read()) if request.url.path.startswith("/plain") else None
        ref = fields["payment"] if fields else dict(parse_qsl(request.content.decode()))[_INTENT]
        account = self._account(request)
        [payment] = [each for each in self.provider.book(account)["payments"] if each["ref"] == ref]
        told = {"currency": payment["currency"], "account": account}
        self.provider.payment(ref, payment["captured_minor"], state="disputed", **told)
        try:
            return self.provider.door.handle_request(request)
        finally:
            self.provider.payment(ref, payment["captured_minor"], **told)

    def _turned_away(self, request: httpx.Request) -> httpx.Response:
        self.provider.fault("rate_429", account=self._account(request))
        return self.provider.door.handle_request(request)

    def _already(self, request: httpx.Request) -> httpx.Response:
        """A hop sent it twice; the second copy was recognised, and its answer is the one heard."""
        self.provider.door.handle_request(request)
        self.provider.fault(self.second_copy, account=self._account(request))
        return self.provider.door.handle_request(request)

    def _redirected(self, request: httpx.Request) -> httpx.Response:
        self.provider.door.handle_request(request)
        return _page(307, b"", {"Location": str(request.url)})

    def _mixed_up(self, request: httpx.Request) -> httpx.Response:
        """What is shown is any other refund of the account."""
        refunds = self.provider.refunds(self._account(request))
        if not refunds:
            raise httpx.ReadError("reset", request=request)
        shown = httpx.Request(
            "GET",
            f"{request.url}/{self.weather.dice.choice(refunds)['id']}",
            headers={"Authorization": request.headers["Authorization"]},
        )
        answer = self.provider.door.handle_request(shown)
        return httpx.Response(
            200 if request.url.path.startswith("/stripe") else 201,
            headers=answer.headers,
            stream=httpx.ByteStream(answer.read()),
        )

    def _travels(self, request: httpx.Request, fate: str) -> httpx.Response:
        if fate == "late":
            self._takes_off(request)
            self.passes(self.weather.dice.choice(_SOON_SECONDS))
            self._others()
            raise httpx.ReadTimeout("silence", request=request)
        answer = self.provider.door.handle_request(request)
        if fate == "slow":
            for _ in range(self.naps):
                self._others()
            self.passes(_PAST_THE_LEASE_SECONDS)
        self._others()
        if fate == "killed_after":
            raise Killed
        if fate == "answer_lost":
            raise httpx.RemoteProtocolError("closed", request=request)
        if fate == "error_after":
            return _page(502, b"<html>bad gateway</html>")
        if fate == "passed_on_429":
            # JSON, and not in the words of the provider.
            return _page(429, b'{"message": "slow down"}', {"Content-Type": "application/json"})
        return answer

    def _sleeps(self) -> None:
        for _ in range(self.naps):
            self.passes(self.weather.passing_seconds())
            self._others()

    def _others(self) -> None:
        if not self.calm and self.weather.dice.random() < self.weather.crowd:
            self.others()

    def _profile(self, request: httpx.Request) -> dict[str, Any]:
        if not self.profiles:
            self.profiles = self.provider.control("GET", "/accounts")
        found: dict[str, Any] = self.profiles[self._account(request)]
        return found

    @staticmethod
    def _account(request: httpx.Request) -> str:
        return request.url.path.split("/")[2]

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

    def landings(self, until: float) -> list[float]:
        """When something lands until then, in order."""
        return sorted(each.at for each in self.flying if each.at <= until)

    def land(self) -> None:
        """What is due by now arrives, in its order; nobody hears the answers."""
        for each in sorted(self.flying):
            if each.at <= self.clock.seconds:
                self.flying.remove(each)
                self.provider.door.handle_request(each.request)
