"""Plants the fault points into a process of a test build: the product has no hooks for them.

Each function of the product that stands at a point is put into one that asks first and last
whether it is to be struck. Nothing else of it changes.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from celery.worker.request import Request
from django.db import connection

from reconciliation import budget, inbox, reconciler
from refunds import approvals, dispatch, intake
from refunds.domain.contract import ProviderContract
from refunds.domain.outcome import RawAnswer
from refunds.providers import http, plain_contracts
from refunds.providers.base import HttpRequest
from tests.storm.points import ORDERS_VARIABLE, take

# Longer than the send deadline.
DELAY_SECONDS = 2.5
PATIENCE_SECONDS = 120
TRUST_AGAIN_SECONDS, TRIAL_SECONDS = 60, 5
_orders = Path(os.environ.get(ORDERS_VARIABLE, "/nowhere"))
_posting = threading.local()
# httpcore's own events, and the point that each is.
_ON_THE_WIRE = {
    "connection.connect_tcp.started": "connect.before",
    "connection.connect_tcp.complete": "connect.after",
    "http11.send_request_headers.started": "first-byte.before",
    "http11.send_request_body.complete": "first-byte.after",
    "http11.receive_response_headers.started": "answer.before",
    "http11.receive_response_body.complete": "answer.after",
}


class Struck(RuntimeError):
    """The fault `raise`: an error that nobody foresaw."""


def plant(*, acks: bool = False) -> None:
    """In this process and in those that it forks; `acks` where messages about money are taken."""
    if acks:
        _put_between(Request, "acknowledge", "ack")
    for place, name, point in (
        (dispatch, "claim", "claim"),
        (dispatch, "resubmit", "claim"),
        (dispatch, "record_answer", "record"),
        (reconciler, "ask", "lookup"),
        (reconciler, "conclude", "decision"),
        (intake, "propose", "proposal"),
        (approvals, "approve", "approval"),
        (inbox, "store", "notice"),
    ):
        _put_between(place, name, point)
    _plant_on_the_wire()


def change_contracts(change: Callable[[ProviderContract], dict[str, Any]]) -> None:
    """What this process knows of each account; before it reads its accounts."""
    for name, contract in plain_contracts.CONTRACTS.items():
        plain_contracts.CONTRACTS[name] = contract.with_changes(**change(contract))


def be_patient() -> None:
    """Call people later than a provider in a box would, and trust a provider again sooner.

    When an absence is believed and how long a key lives stays as the contracts have it, and where
    nothing can be looked up nothing is waited for.
    """
    setattr(budget, "_WINDOW_SECONDS", TRUST_AGAIN_SECONDS)  # noqa: B010
    setattr(budget, "_TRIAL_SECONDS", TRIAL_SECONDS)  # noqa: B010
    change_contracts(
        lambda each: {} if each.lookup == "none" else {"escalation_grace_seconds": PATIENCE_SECONDS}
    )


def _strike(point: str) -> None:
    kind = take(_orders, point)
    if kind is not None:
        _FAULTS[kind](point)


def _put_between(place: object, name: str, point: str) -> None:
    setattr(place, name, _between(point, getattr(place, name)))


def _between(point: str, act: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(act)
    def struck(*given: Any, **named: Any) -> Any:
        _strike(f"{point}.before")
        result = act(*given, **named)
        _strike(f"{point}.after")
        return result

    return struck


def _plant_on_the_wire() -> None:
    """Only where a refund is asked for: lookups have points of their own."""
    call, trace = http.call, http._Wire.trace

    @wraps(call)
    def noted_call(request: HttpRequest, **limits: Any) -> RawAnswer:
        _posting.now = request.method == "POST"
        try:
            return call(request, **limits)
        finally:
            _posting.now = False

    @wraps(trace)
    def struck_trace(wire: Any, name: str, info: dict[str, Any]) -> None:
        # Last: between the check of the deadline and the byte is where it hurts most.
        trace(wire, name, info)
        point = _ON_THE_WIRE.get(name)
        if point is not None and getattr(_posting, "now", False):
            _strike(point)

    http.call = noted_call
    setattr(http._Wire, "trace", struck_trace)  # noqa: B010


def _exit(_: str) -> None:
    os._exit(137)


def _stop(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _cut_db(_: str) -> None:
    """The connection of this thread is gone, as after a switch that failed on the way."""
    if connection.connection is not None:
        connection.connection.pgconn.finish()


def _raise(point: str) -> None:
    raise Struck(f"struck at {point}")


def _delay(_: str) -> None:
    time.sleep(DELAY_SECONDS)


_FAULTS: dict[str, Callable[[str], None]] = {
    "exit": _exit,
    "stop": _stop,
    "cut-db": _cut_db,
    "raise": _raise,
    "delay": _delay,
}
