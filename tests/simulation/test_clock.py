"""The clock of the schedules: what Python and what the database read is one time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from tests.simulation.clock import Clock, movable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True, scope="module")
def _movable(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), ExitStack() as database:
        database.enter_context(movable())
        yield


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


@pytest.mark.parametrize("passed_seconds", [0, 1800])
def test_a_process_that_is_put_aside_while_its_clock_is_set_writes_no_instant_of_the_past(
    passed_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by seeds 230 and 248 on a busy machine: an order's move after a claim bore an earlier
    instant than the claim, and whoever compared the two took it for one before."""
    travel = time_machine.travel
    monkeypatch.setattr(
        time_machine, "travel", lambda to, **how: travel(to - timedelta(seconds=1), **how)
    )
    with Clock() as clock:
        clock.move(passed_seconds)
        before = _database_now()
        here = timezone.now()
        after = _database_now()
    assert before <= here <= after
