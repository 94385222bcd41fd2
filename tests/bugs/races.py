"""Making two programs meet: both wait for one row until it is let go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from refunds.models import Order

_POLL_SECONDS = 0.01


def until(condition: Callable[[], object], *, seconds: float = 10) -> None:
    """Return as soon as the condition holds; fail the test when it does not in time."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, f"not within {seconds:g} s"
        time.sleep(_POLL_SECONDS)


@contextmanager
def order_held(ref: str) -> Iterator[None]:
    """Hold an order's row: whoever wants it meanwhile waits, and all go on at the same instant."""
    with transaction.atomic():
        Order.objects.select_for_update().get(ref=ref)
        yield


def until_waiting(number: int) -> None:
    """Until so many sessions of this database wait for a lock of somebody else."""
    until(lambda: _waiting() >= number)


def _waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        count: int = cursor.fetchone()[0]
    return count
