"""The only way to a provider: one attempt, one new connection, one write, one total deadline.

Connect first, then compare the monotonic clock with the send deadline, then write at once
(rule 7). No retries, no redirects, no proxies, no reused connection (rule 8). httpx's timeouts
are per read, so a watchdog shuts the socket at the total deadline.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from contextlib import closing
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

import httpx
from django.conf import settings

from refunds.domain.effects import require_declared
from refunds.domain.outcome import RawAnswer
from refunds.providers import deadlines
from refunds.providers.base import HttpRequest

_KEPT_HEADERS = (
    "content-type",
    "content-length",
    "retry-after",
    "request-id",
    "idempotent-replayed",
    "stripe-should-retry",
    "sandbox-mode",
    "location",
)


_HEADERS = {"Accept": "*/*", "User-Agent": "aftersend"}
_ALWAYS = {"Accept-Encoding": "identity", "Connection": "close"}


class _SendDeadlinePassed(Exception):
    """The first byte would have left after the send deadline."""


class _NotPublic(Exception):
    """The provider's name resolved to an address that is not a public one."""


_TIMEOUTS = httpx.Timeout(connect=5, pool=1, write=5, read=30).as_dict()


# Refunds of an account all go to one address, and reading it costs a quarter of a request's making.
_url = lru_cache(maxsize=64)(httpx.URL)


@cache
def _transport() -> httpx.BaseTransport:
    # One per process: it costs a TLS context. Keeping no connection alive is the rule. Without a
    # client around it there is nobody who would follow a redirect, keep a cookie or read a proxy
    # out of the environment.
    return httpx.HTTPTransport(
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=0), trust_env=False
    )


class _Wire:
    """Watches one call: instants, the send deadline, and the socket to shut when time is up."""

    def __init__(self, send_deadline: float | None) -> None:
        self.send_deadline = send_deadline
        self.connected_at: datetime | None = None
        self.first_byte_at: datetime | None = None
        self.timed_out = False
        self._socket: socket.socket | None = None

    def trace(self, name: str, info: dict[str, Any]) -> None:
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            self.connected_at = datetime.now(UTC)
            if not settings.ALLOW_LOOPBACK_PROVIDERS and self._socket is not None:
                _require_public(self._socket)
        elif name == "http11.send_request_headers.started":
            # Resolving and connecting may outlast the watchdog, which then had nothing to shut.
            if self.timed_out or (
                self.send_deadline is not None and time.monotonic() > self.send_deadline
            ):
                raise _SendDeadlinePassed
            self.first_byte_at = datetime.now(UTC)

    def shut(self) -> None:
        self.timed_out = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                # Closed by the other side in the same instant: what we wanted has happened.
                return


def _require_public(connected: socket.socket) -> None:
    address = ipaddress.ip_address(connected.getpeername()[0].partition("%")[0])
    if not address.is_global:
        connected.close()
        raise _NotPublic(f"{address} is not a public address")


def call(
    request: HttpRequest,
    *,
    total_seconds: float,
    body_bytes_max: int,
    send_deadline: float | None = None,
) -> RawAnswer:
    """Make one call; never raises for what the wire does: the answer says what happened.

    `send_deadline` is a `time.monotonic()` value; past it nothing is written.
    `first_byte_at` is None in the answer exactly when no byte of the request was started.
    Raises UndeclaredEffect, before anything is opened, for a request that is no reading and names
    no declared effect.
    """
    require_declared(request.method, request.effect)
    wire = _Wire(send_deadline)
    watched = deadlines.OF_THIS_PROCESS.watch(total_seconds, wire.shut)
    try:
        return _exchange(request, wire, body_bytes_max)
    except _SendDeadlinePassed:
        return _broken(wire, "the send deadline had passed when the connection stood")
    except (httpx.HTTPError, httpx.InvalidURL, _NotPublic, OSError, UnicodeError) as error:
        why = f"no end after {total_seconds:g} s" if wire.timed_out else _words(error)
        return _broken(wire, why)
    finally:
        watched.call_off()


def _exchange(request: HttpRequest, wire: _Wire, body_bytes_max: int) -> RawAnswer:
    response = _transport().handle_request(
        httpx.Request(
            request.method,
            _url(request.url),
            headers=_HEADERS | request.headers | _ALWAYS,
            content=request.body or None,
            extensions={"trace": wire.trace, "timeout": _TIMEOUTS},
        )
    )
    with closing(response):
        body = bytearray()
        unreadable = ""
        if response.headers.get("content-encoding", "identity") != "identity":
            unreadable = "the body is compressed, which we did not ask for"
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > body_bytes_max:
                unreadable = f"the body is longer than {body_bytes_max} bytes"
                break
        return RawAnswer(
            status=response.status_code,
            headers={
                name: response.headers[name][:300]
                for name in _KEPT_HEADERS
                if name in response.headers
            },
            body=bytes(body[:body_bytes_max]),
            unreadable=unreadable,
            connected_at=wire.connected_at,
            first_byte_at=wire.first_byte_at,
            closed_at=datetime.now(UTC),
        )


def _broken(wire: _Wire, failure: str) -> RawAnswer:
    return RawAnswer(
        failure=failure,
        connected_at=wire.connected_at,
        first_byte_at=wire.first_byte_at,
        closed_at=datetime.now(UTC),
    )


_WORDS: dict[type[Exception], str] = {
    httpx.ConnectError: "the connection was not made",
    httpx.ConnectTimeout: "connecting took too long",
    httpx.PoolTimeout: "this process has too many calls open",
    httpx.ReadTimeout: "silence after the request was written",
    httpx.WriteTimeout: "writing the request took too long",
    httpx.ReadError: "the connection broke while waiting for the answer",
    httpx.WriteError: "the connection broke while writing the request",
    httpx.RemoteProtocolError: "the connection closed without a whole answer",
}


def _words(error: Exception) -> str:
    known = _WORDS.get(type(error), type(error).__name__)
    said = str(error).rstrip(".")
    return f"{known} ({said})"[:200] if said else known
