"""Rows as old or as wrong as no verb would make them: the guards of the database are set aside."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from reconciliation.monitors.reading import Reading
from reconciliation.monitors.table import MONITORS
from refunds.models import Attempt, Evidence, Operation
from refunds.providers import registry
from tests import build
from tests.cast import Cast

_orders = itertools.count(1)


@contextmanager
def guards_aside() -> Iterator[None]:
    """Inside, a superuser writes what triggers and keys would refuse."""
    with transaction.atomic(), connection.cursor() as cursor:
        # What was written so far is looked at as it is, and not as it will have been made.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def forced(operation: Operation, **columns: Any) -> None:
    """Write columns of an operation as they are given."""
    with guards_aside():
        Operation.objects.filter(pk=operation.pk).update(**columns)


def in_state(
    cast: Cast,
    state: str,
    *,
    seconds_ago: float,
    account: str = "plain-main",
    outcome: str | None = "unanswered",
    **columns: Any,
) -> Operation:
    """An operation that entered `state` so long ago, with one attempt as old as that."""
    ref = f"m-{next(_orders)}"
    build.order(ref, account=account)
    operation = build.proposed(cast.echo, ref, 100)
    at = timezone.now() - timedelta(seconds=seconds_ago)
    unknown = {"unknown_since": at} if state == "unknown" else {}
    forced(
        operation,
        state=state,
        entered_at=at,
        due_at=timezone.now(),
        **({"attempt_count": 1} | unknown | columns),
    )
    attempt(operation, 1, seconds_ago=seconds_ago, outcome=outcome)
    return operation


def attempt(
    operation: Operation, no: int, *, seconds_ago: float, outcome: str | None, **columns: Any
) -> Attempt:
    """One closed attempt, recorded so long ago."""
    at = timezone.now() - timedelta(seconds=seconds_ago)
    values: dict[str, Any] = {
        "fence": 3,
        "recorded_at": at,
        "send_deadline": at + timedelta(seconds=2),
        "lease_until": at + timedelta(seconds=60),
        "first_byte_at": at,
        "closed_at": at,
        "outcome": outcome,
        "account_identity": {},
        "contract_hash": registry.account(operation.provider_account).contract.hash(),
    }
    with guards_aside():
        return Attempt.objects.create(operation=operation, no=no, **(values | columns))


def evidence(operation: Operation, kind: str, *, seconds_ago: float = 0, **facts: Any) -> Evidence:
    """A stored answer or lookup that began so long ago; `facts` as they are stored."""
    at = timezone.now() - timedelta(seconds=seconds_ago)
    return Evidence.objects.create(
        operation=operation,
        attempt_no=1 if kind == "answer" else None,
        kind=kind,
        started_at=at,
        stored_at=at,
        body=b"",
        facts={"verdict": "absent", "complete": True, "candidates": []} | facts,
    )


def read(name: str) -> list[Reading]:
    """What a monitor reads now."""
    [monitor] = [each for each in MONITORS if each.name == name]
    return monitor.read()


def fires(name: str) -> dict[str, str]:
    """Subject to level of what a monitor would fire for now."""
    [monitor] = [each for each in MONITORS if each.name == name]
    return {each.subject: level for each in monitor.read() if (level := monitor.level(each.value))}
