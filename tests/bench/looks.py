"""What people and schedules look at, timed in process: pages, sweeps, and notices at their door.

Milliseconds. No network and no other process but the database lies between; import after
`django.setup()`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch, ledger
from refunds.models import Operation, Person
from tests.notices.telling import plain_body, plain_refund, secret_of, signature

BATCH = 200
NOTICES_TO = "plain-main"


def _ended() -> Operation:
    """One from the middle of the history, with every one of its policy checks."""
    found = Operation.objects.filter(state="succeeded").select_related("order")
    middle = found.count() // 2
    for each in found.order_by("pk")[middle : middle + 20]:
        if each.checks.count() == 11:
            return each
    raise AssertionError("no finished operation has all its checks")


def _pages() -> dict[str, str]:
    ended = _ended()
    return {
        "queue": "/approvals",
        "unknown": "/unknown",
        "operation": f"/operations/{ended.pk}",
        "order": f"/orders/{ended.order.ref}",
        "audit": "/approvals?tab=all",
        "orders": "/orders",
    }


def _visitor() -> Client:
    visitor = Client(SERVER_NAME="localhost")
    visitor.force_login(
        Person.objects.get(username="bench-lead-0"), "django.contrib.auth.backends.ModelBackend"
    )
    return visitor


def pages(*, repeats: int) -> dict[str, Any]:
    """Each page so often, in turns, by a lead who is signed in: page -> times and queries."""
    visitor = _visitor()
    addresses = _pages()
    shown: dict[str, Any] = {}
    for name, address in addresses.items():
        visitor.get(address)  # templates and plans are as in a server that runs
        with CaptureQueriesContext(connection) as queries:
            answer = visitor.get(address)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        shown[name] = {"queries": len(queries), "bytes": len(answer.content), "ms": []}
    for _ in range(repeats):
        for name, address in addresses.items():
            shown[name]["ms"].append(_ms(partial(visitor.get, address)))
    return shown


def page(*, name: str, repeats: int) -> list[float]:
    """One page by itself, as the page of Django's admin is asked for that it stands beside."""
    visitor = _visitor()
    address = _pages()[name]
    visitor.get(address)
    return [_ms(partial(visitor.get, address)) for _ in range(repeats)]


def sweeps(*, repeats: int) -> dict[str, list[float]]:
    """What the schedule asks every second or so while nothing is due."""
    now = timezone.now()
    asked: dict[str, Callable[[], object]] = {
        "ready": lambda: dispatch.ready(BATCH),
        "due": lambda: list(reconciler.due(now, batch_max=BATCH)),
        "leases": lambda: reconciler.end_leases(now, batch_max=BATCH),
        "expiry": lambda: ledger.expire(now, batch_max=BATCH),
    }
    return {name: [_ms(ask) for _ in range(repeats)] for name, ask in asked.items()}


def notices(*, first: int, count: int) -> dict[str, float]:
    """`count` genuine notices at the door, one after the other; seconds until the last is
    acknowledged, and so stored."""
    door = Client(SERVER_NAME="localhost")
    bodies = [
        plain_body(f"evt_bench_{first + no}", plain_refund(id=f"rf_bench_{first + no}"))
        for no in range(count)
    ]
    signed = [(body, signature(body, secret_of(NOTICES_TO))) for body in bodies]
    began, cpu = time.perf_counter(), time.process_time()
    for body, said in signed:
        answer = door.post(
            f"/webhooks/{NOTICES_TO}",
            body,
            content_type="application/json",
            headers={"Sandbox-Signature": said},
        )
        assert answer.status_code == 200, answer.content
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}


def _ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return round((time.perf_counter() - began) * 1000, 3)
