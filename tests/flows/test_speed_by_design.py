"""What keeps it fast is counted, not timed: commits, round trips, indexes, plans."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from refunds import dispatch, policies
from refunds.domain import states
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


# A statement that was sent apart from its values is shown as `QUERY = "..." - PARAMS = ...`.
_WRITES = re.compile(
    r"^(?:QUERY = .)?(?:\\n|\s)*(WITH\b.*\b(INSERT|UPDATE)\b|INSERT|UPDATE|DELETE)", re.DOTALL
)


def write_transactions(queries: CaptureQueriesContext) -> int:
    """Transactions that wrote: blocks between BEGIN and COMMIT, and statements by themselves."""
    written, inside, dirty = 0, False, False
    for query in queries:
        statement = query["sql"]
        if statement == "BEGIN":
            inside, dirty = True, False
        elif statement in ("COMMIT", "ROLLBACK"):
            written += inside and dirty and statement == "COMMIT"
            inside = False
        elif _WRITES.match(statement):
            dirty = True
            written += not inside
    return written


def sent(provider: SandboxProcess, operation: Any) -> None:
    provider.payment()
    assert dispatch.send(str(operation.pk)) == "confirmed"


def test_a_policy_cleared_refund_takes_three_write_transactions_from_proposal_to_recorded(
    provider: SandboxProcess, cast: Cast, tmp_path: Path, settings: Any
) -> None:
    text = settings.POLICY_FILE.read_text()
    settings.POLICY_FILE = tmp_path / "policy.toml"
    settings.POLICY_FILE.write_text(
        text.replace("tier0_max_minor = 0 ", "tier0_max_minor = 100000 ")
    )
    policies.current.cache_clear()
    build.order()
    with CaptureQueriesContext(connection) as queries:
        operation = build.proposed(cast.echo)
        assert operation.state == states.AUTHORIZED
        sent(provider, operation)
    assert write_transactions(queries) == 3


def test_each_approval_adds_one_write_transaction(provider: SandboxProcess, cast: Cast) -> None:
    build.order()
    with CaptureQueriesContext(connection) as queries:
        operation = build.authorized(cast.echo, cast.ben)
        sent(provider, operation)
    assert write_transactions(queries) == 4


def test_a_send_is_one_read_and_two_statements(provider: SandboxProcess, cast: Cast) -> None:
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.payment()
    dispatch.send(str(operation.pk))  # warms the witness's identity of this process
    build.order("4822")
    second = build.authorized(cast.foxtrot, cast.cleo, order_ref="4822")
    provider.payment("pi_4822")
    with CaptureQueriesContext(connection) as queries:
        assert dispatch.send(str(second.pk)) == "confirmed"
    assert len(queries) == 3, [query["sql"][:80] for query in queries]


def test_the_operation_table_has_at_most_five_indexes(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'operation'")
        names = {row[0] for row in cursor.fetchall()}
    assert len(names) <= 5, names


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM operation WHERE state = 'authorized' AND due_at <= now()"
        " ORDER BY due_at, id LIMIT 200",
        "SELECT id FROM operation WHERE state = 'submitting' AND due_at <= now() LIMIT 200",
        "SELECT id FROM operation WHERE state = 'awaiting_approval' AND due_at <= now() LIMIT 200",
        # What every page counts and lists names no instant: nothing that waits may be left out.
        "SELECT count(*) FROM operation WHERE state = 'awaiting_approval' AND stale_cause <> ''",
        "SELECT min(unknown_since) FROM operation"
        " WHERE state IN ('pending', 'submitting', 'unknown')",
        "SELECT * FROM operation WHERE state = 'awaiting_approval' ORDER BY due_at, id LIMIT 51",
    ],
)
def test_what_has_not_ended_is_read_from_a_partial_index(db: None, query: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {query}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "operation_due" in plan, plan
