"""Every count of the auditor can rise: each fault is planted once, past the database's guards."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch
from refunds.ledger.adoption import Stuck, adopt
from refunds.models import Operation
from tests import build
from tests.audit_book import FAULTS, audit, is_clean
from tests.cast import Cast
from tests.provider_process import ROOT, SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def database() -> str:
    """The test database as libpq knows it."""
    named = connection.get_connection_params()
    wanted = {name: named[name] for name in ("dbname", "user", "host", "port") if name in named}
    return psycopg.conninfo.make_conninfo(**wanted)


@pytest.fixture
def plant(database: str) -> Iterator[psycopg.Connection]:
    """A connection that no trigger and no foreign key stops."""
    with psycopg.connect(database, autocommit=True) as past_the_guards:
        past_the_guards.execute("SET session_replication_role = replica")
        yield past_the_guards


@pytest.fixture
def sent(provider: SandboxProcess, cast: Cast) -> Operation:
    """One refund that went well."""
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    return operation


@pytest.fixture
def unknown(provider: SandboxProcess, cast: Cast) -> Operation:
    """One refund whose answer was lost."""
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    return operation


def counted(provider: SandboxProcess, database: str) -> dict[str, Any]:
    return audit(str(provider.book_file), database)


def faults(counts: dict[str, Any]) -> dict[str, int]:
    return {name: counts[name] for name in FAULTS if counts[name]}


def test_a_refund_that_went_well_leaves_nothing_to_find(
    provider: SandboxProcess, sent: Operation, database: str
) -> None:
    counts = counted(provider, database)
    assert is_clean(counts), counts
    assert (counts["operations"], counts["in_book"], counts["unresolved"]) == (1, 1, 0)


def test_an_unknown_refund_is_no_fault_but_is_unresolved_until_a_lookup_or_a_case(
    provider: SandboxProcess, unknown: Operation, database: str
) -> None:
    counts = counted(provider, database)
    assert (faults(counts), counts["unresolved"]) == ({}, 1)
    reconciler.look_up(unknown.pk)
    assert counted(provider, database)["unresolved"] == 0


def test_two_refunds_of_one_marker_are_a_duplicate(
    provider: SandboxProcess, cast: Cast, database: str
) -> None:
    provider.payment(captured_minor=50000)
    build.order(captured_minor=50000)
    provider.fault("execute_twice")
    dispatch.send(str(build.authorized(cast.echo, cast.ben).pk))
    counts = counted(provider, database)
    assert counts["duplicates"] == 1
    assert "has 2 refunds" in counts["found"]["duplicates"][0]


def test_a_refund_that_nobody_authorised_is_a_duplicate(
    provider: SandboxProcess, sent: Operation, database: str, plant: psycopg.Connection
) -> None:
    plant.execute("DELETE FROM event WHERE event = 'approved'")
    counts = counted(provider, database)
    assert counts["duplicates"] == 1
    assert "which nobody authorised" in counts["found"]["duplicates"][0]


@pytest.mark.parametrize("state", ["failed", "withdrawn", "returned"])
def test_an_end_without_money_is_false_where_the_book_has_the_refund(
    provider: SandboxProcess,
    sent: Operation,
    database: str,
    plant: psycopg.Connection,
    state: str,
) -> None:
    plant.execute("UPDATE operation SET state = %s", [state])
    assert counted(provider, database)["false_ends"] == 1


@pytest.mark.parametrize(("said", "count"), [("after it", 1), ("before it", 0)])
def test_who_was_called_failed_while_the_book_had_the_refund_is_counted(
    provider: SandboxProcess,
    sent: Operation,
    database: str,
    plant: psycopg.Connection,
    said: str,
    count: int,
) -> None:
    """Also where it was found out since: a customer may have been told by then."""
    at = timezone.now() - timedelta(hours=1) if said == "before it" else timezone.now()
    plant.execute(
        "INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,"
        " detail, at) VALUES (%s, 99, 'refused', 'submitting', 'failed', 'dispatcher', 'test',"
        " '{}', %s)",
        [sent.pk, at],
    )
    assert counted(provider, database)["called_failed"] == count


def test_a_success_is_false_without_a_refund_of_that_amount(
    provider: SandboxProcess, sent: Operation, database: str, plant: psycopg.Connection
) -> None:
    plant.execute("UPDATE operation SET amount_minor = amount_minor + 1")
    assert faults(counted(provider, database)) == {"false_ends": 1}


def test_a_success_that_the_provider_undid_is_false(
    provider: SandboxProcess, sent: Operation, database: str
) -> None:
    [refund] = provider.refunds()
    provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
    counts = counted(provider, database)
    assert counts["false_ends"] == 1
    assert "the book has nothing" in counts["found"]["false_ends"][0]


def test_an_authorised_refund_that_nothing_holds_back_is_lost(
    provider: SandboxProcess, cast: Cast, database: str, plant: psycopg.Connection
) -> None:
    provider.payment()
    build.order()
    build.authorized(cast.echo, cast.ben)
    assert faults(counted(provider, database)) == {"lost": 1}
    plant.execute("UPDATE provider_account SET pause_kind = 'person'")
    assert faults(counted(provider, database)) == {}


def test_an_approval_that_went_away_without_a_cause_is_lost(
    provider: SandboxProcess, cast: Cast, database: str, plant: psycopg.Connection
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    assert faults(counted(provider, database)) == {}
    plant.execute("UPDATE operation SET stale_cause = ''")
    assert faults(counted(provider, database)) == {"lost": 1}


@pytest.mark.parametrize(
    "planted",
    [
        "DELETE FROM event WHERE event = 'confirmed'",
        "DELETE FROM event WHERE event = 'approved'",
        "UPDATE event SET event = 'resubmitted', from_state = 'unknown'"
        " WHERE event = 'submission_started'",
        "UPDATE operation SET version = version + 1",
        "DELETE FROM order_move WHERE cause = 'reserved'",
    ],
)
def test_a_hole_in_the_history_is_a_missing_event(
    provider: SandboxProcess,
    sent: Operation,
    database: str,
    plant: psycopg.Connection,
    planted: str,
) -> None:
    plant.execute(planted.encode())
    assert counted(provider, database)["missing_events"] >= 1


@pytest.mark.parametrize(
    "planted",
    [
        "UPDATE payment SET held_minor = 1",
        "UPDATE payment SET refunded_minor = refunded_minor + 1",
        "UPDATE payment SET captured_minor = 100",
        "UPDATE reservation SET state = 'held'",
        "UPDATE provider_refund SET counts = false",
        "UPDATE provider_refund SET ref = 'rf_of_nobody'",
    ],
)
def test_a_sum_that_does_not_add_up_is_found(
    provider: SandboxProcess,
    sent: Operation,
    database: str,
    plant: psycopg.Connection,
    planted: str,
) -> None:
    plant.execute(planted.encode())
    assert counted(provider, database)["money"] >= 1


def test_money_of_an_unknown_refund_that_is_not_held_is_found(
    provider: SandboxProcess, unknown: Operation, database: str, plant: psycopg.Connection
) -> None:
    plant.execute("UPDATE reservation SET state = 'released'")
    plant.execute("UPDATE payment SET held_minor = 0")
    assert faults(counted(provider, database)) == {"money": 1}


@pytest.fixture
def adopted(provider: SandboxProcess, cast: Cast) -> Operation:
    """A refund that another system made, taken over and found by its reference."""
    provider.payment()
    order = build.order()
    made = provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 5000},
    )
    stuck = Stuck(
        payment=order.payments.get(),
        amount_minor=5000,
        currency="USD",
        source_ref="old-1",
        requested_at=timezone.now(),
        provider_refund_ref=made["id"],
    )
    with transaction.atomic():
        operation = adopt(stuck, cast.ines)
    reconciler.look_up(operation.pk)
    return operation


def test_the_end_of_what_another_system_sent_is_held_against_the_refund_it_names(
    provider: SandboxProcess, adopted: Operation, database: str, plant: psycopg.Connection
) -> None:
    assert is_clean(counted(provider, database)), counted(provider, database)
    plant.execute("UPDATE operation SET state = 'failed'")
    assert counted(provider, database)["false_ends"] == 1
    plant.execute("UPDATE operation SET state = 'succeeded', amount_minor = 4000")
    assert counted(provider, database)["false_ends"] == 1


def test_a_notice_that_was_acknowledged_and_is_not_stored_is_lost(
    provider: SandboxProcess, sent: Operation, database: str
) -> None:
    with closing(sqlite3.connect(provider.book_file, autocommit=True)) as book:
        book.execute(
            "INSERT INTO notices (seq, account, refund_id, status_at, due_at, state, options)"
            " VALUES (77, 'plain-main', 'rf_1', 0, 0, 'sent', '{}')"
        )
    counts = counted(provider, database)
    assert faults(counts) == {"notices_lost": 1}
    assert counts["found"]["notices_lost"][0].startswith("evt_0077 of plain-main")


def test_the_command_prints_the_counts_and_ends_with_1_when_something_is_wrong(
    provider: SandboxProcess, sent: Operation, database: str, plant: psycopg.Connection
) -> None:
    assert _command(provider.book_file, database)[0] == 0
    plant.execute("UPDATE payment SET held_minor = 1")
    code, counts = _command(provider.book_file, database)
    assert (code, counts["money"]) == (1, 1)


def _command(book: Path, database: str) -> tuple[int, dict[str, Any]]:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "tests.audit_book"),
            *("--book", str(book), "--database", database),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)
