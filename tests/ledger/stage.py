"""The scenes that the rules are played in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.db import connection
from django.utils import timezone

from reconciliation import reconciler
from refunds.domain import states
from refunds.models import Operation, ProviderAccount
from tests import build
from tests.cast import Cast
from tests.ledger.actors import database_url
from tests.ledger.rows import poll, state_of
from tests.provider_process import SandboxProcess

BEFORE_THE_CALL = "refunds.providers.http:call"
CONNECTED = "httpcore._sync.http11:HTTP11Connection._send_request_headers"
ANSWER_IN_HAND = "refunds.ledger.answer:record_answer"
CLAIM = "WITH ready AS MATERIALIZED"
ANSWER = "WITH seen AS"


def ready(
    provider: SandboxProcess,
    cast: Cast,
    ref: str = "4821",
    *,
    account: str = "plain-main",
    amount_minor: int = 7900,
) -> Operation:
    """An approved refund of a payment that both sides know; proposed by nobody who leads."""
    if account != "plain-odd":
        provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    return build.authorized(cast.omar, cast.ben, order_ref=ref, amount_minor=amount_minor)


def several(
    provider: SandboxProcess, cast: Cast, count: int, *, account: str = "plain-main"
) -> list[Operation]:
    """Approved refunds of orders of their own."""
    return [
        ready(provider, cast, f"70{number:02}", account=account, amount_minor=100 + number)
        for number in range(count)
    ]


def creates(provider: SandboxProcess, operation: Operation | None = None) -> list[dict[str, Any]]:
    """The refund requests that reached the provider, executed or not."""
    return [
        call
        for call in provider.calls()
        if call["method"] == "POST" and (operation is None or call["marker"] == operation.marker)
    ]


def refunds(provider: SandboxProcess, operation: Operation) -> list[dict[str, Any]]:
    """What the provider's book has for one operation."""
    return [each for each in provider.refunds() if each["aftersend_operation"] == operation.marker]


def after_the_lease() -> datetime:
    return timezone.now() + timedelta(seconds=61)


def lease_ends(operation: Operation) -> None:
    """Its sender did not come back in time: submitting -> unknown."""
    assert reconciler.end_leases(after_the_lease(), batch_max=100) == 1
    assert state_of(operation) == states.UNKNOWN


def make_due(operation: Operation) -> None:
    """End the back-off after an attempt that was not executed, and the pause that may follow."""
    Operation.objects.filter(pk=operation.pk).update(not_before=None)
    ProviderAccount.objects.update(pause_kind="", not_executed_in_row=0)


def past_the_send_deadline(operation: Operation) -> None:
    """Wait until the last attempt may not write any more."""
    deadline = operation.attempts.order_by("-no").values_list("send_deadline", flat=True)[0]
    poll(lambda: timezone.now() > deadline, "the send deadline")


def somebody_waits_for_a_lock() -> None:
    """Wait until another connection of this database stands behind a lock."""
    tries_for_a_lock(1)


def tries_for_a_lock(count: int) -> None:
    """Wait until so many statements have stood behind a lock, one after the other or together."""
    seen: set[Any] = set()
    with psycopg.connect(database_url(), autocommit=True) as other:

        def enough() -> bool:
            rows = other.execute(
                "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            )
            seen.update(rows.fetchall())
            return len(seen) >= count

        poll(enough, f"{count} statements behind a lock", deadline_seconds=20)


def run(sql: str, *parameters: Any) -> None:
    """One statement past the verbs, but not past the guards."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
