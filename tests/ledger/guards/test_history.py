"""History is written once: no edit, no deletion, no truncation, no second answer."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.ledger.guards.guarded import Guarded

EDITS = {
    "event": "actor = 'somebody else'",
    "evidence": "body = ''",
    "approval": "expires_at = expires_at + interval '1 day'",
    "order_move": "cause = 'feed'",
    "policy_check": "passed = true",
    "proposal": "tool_call_id = 'another'",
}
STAYS = ("operation", "attempt", "provider_refund", "reservation", "orders", "payment")


@pytest.mark.parametrize("table", sorted(EDITS))
def test_history_is_not_edited(guarded: Guarded, table: str) -> None:
    guarded.refuses(f"UPDATE {table} SET {EDITS[table]}", says=f"UPDATE on {table}: append only")


@pytest.mark.parametrize("table", [*sorted(EDITS), *STAYS])
def test_history_is_not_deleted(guarded: Guarded, table: str) -> None:
    guarded.refuses(f"DELETE FROM {table}", says=f"DELETE on {table}: (append only|history stays)")


@pytest.mark.parametrize("table", [*sorted(EDITS), *STAYS])
def test_history_is_not_truncated(guarded: Guarded, table: str) -> None:
    guarded.refuses(f"TRUNCATE {table} CASCADE", says=r"TRUNCATE on \w+: history stays")


@pytest.mark.parametrize("table", [*sorted(EDITS), *STAYS])
def test_every_table_of_history_has_its_own_lock_against_truncation(
    guarded: Guarded, table: str
) -> None:
    """CASCADE above may have met the lock of another table first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgenabled FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname = %s"
            " AND tgtype & 32 = 32",
            [table, f"{table}_whole"],
        )
        assert cursor.fetchall() == [("O",)]


# Attempts


AGAIN = (
    "INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,"
    " closed_at, account_identity, contract_hash) SELECT t.operation_id, {no}, {fence},"
    " recorded_at, send_deadline, lease_until, {closed_at}, account_identity, contract_hash"
    " FROM attempt t JOIN {operation} o ON o.id = t.operation_id"
)
_MOVED = (
    "WITH moved AS (UPDATE operation SET state = 'submitting', version = version + 1,"
    " attempt_count = attempt_count + 1 WHERE state = 'unknown'"
    " RETURNING id, version, attempt_count), noted AS (INSERT INTO event (operation_id, seq,"
    " event, from_state, to_state, actor_kind, actor, detail, at) SELECT id, version,"
    " 'resubmitted', 'unknown', 'submitting', 'dispatcher', 'test', '{}', clock_timestamp()"
    " FROM moved) "
)
SENT_AGAIN = _MOVED + AGAIN.format(
    no="o.attempt_count", fence="o.version", closed_at="NULL", operation="moved"
)


def test_an_attempt_is_open_only_while_its_operation_is_being_sent_under_it(
    guarded: Guarded,
) -> None:
    guarded.accepts(SENT_AGAIN)
    of_another = {"fence": "o.version", "closed_at": "NULL", "operation": "operation"}
    unsent = AGAIN.format(no="o.attempt_count + 1", **of_another)
    guarded.refuses(unsent, says="attempt_one_open")
    closed = of_another | {"closed_at": "clock_timestamp()"}
    guarded.accepts(AGAIN.format(no="o.attempt_count + 1", **closed))


@pytest.mark.parametrize(
    "then",
    [
        # Another one beside it, with or without the count that says so.
        AGAIN.format(no="9", fence="o.version", closed_at="NULL", operation="operation")
        + " LIMIT 1",
        "UPDATE operation SET attempt_count = attempt_count + 1 WHERE state = 'submitting'",
        # On to where it is sent from once more.
        "WITH m AS (UPDATE operation SET state = 'unknown', version = version + 1"
        " WHERE state = 'submitting' RETURNING id, version) INSERT INTO event (operation_id, seq,"
        " event, from_state, to_state, actor_kind, actor, detail, at) SELECT id, version,"
        " 'unanswered', 'submitting', 'unknown', 'dispatcher', 'test', '{}', clock_timestamp()"
        f" FROM m; {SENT_AGAIN} WHERE t.no = 1",
    ],
)
def test_an_operation_has_one_open_attempt(guarded: Guarded, then: str) -> None:
    # What is deferred to a commit is asked now, as if the first send had been committed.
    both = f"{SENT_AGAIN}; SET CONSTRAINTS ALL IMMEDIATE; {then}"
    guarded.refuses(f"DO $$ BEGIN {both}; END $$", says="attempt_one_open")


@pytest.mark.parametrize("outcome", ["confirmed", "not_sent", None])
def test_an_attempt_is_answered_once(guarded: Guarded, outcome: str | None) -> None:
    guarded.refuses(
        "UPDATE attempt SET outcome = %s", [outcome], says="an attempt is answered once"
    )


@pytest.mark.parametrize(
    "change", ["closed_at = NULL", "closed_at = closed_at + interval '1 second'"]
)
def test_a_closed_attempt_stays_closed(guarded: Guarded, change: str) -> None:
    guarded.refuses(f"UPDATE attempt SET {change}", says="an attempt is answered once")


def test_an_absence_covers_an_attempt_once(guarded: Guarded) -> None:
    guarded.accepts("UPDATE attempt SET settled_by_evidence = 7")
    guarded.refuses(
        "DO $$ BEGIN UPDATE attempt SET settled_by_evidence = 7;"
        " UPDATE attempt SET settled_by_evidence = NULL; END $$",
        says="an attempt is answered once",
    )


@pytest.mark.parametrize(
    "change",
    [
        "no = no + 1",
        "fence = fence + 1",
        "recorded_at = recorded_at + interval '1 second'",
        "send_deadline = send_deadline + interval '1 second'",
        "lease_until = lease_until + interval '1 second'",
        "account_identity = '{}'",
        "contract_hash = ''",
        "operation_id = gen_random_uuid()",
    ],
)
def test_an_attempt_is_recorded_once(guarded: Guarded, change: str) -> None:
    guarded.refuses(f"UPDATE attempt SET {change}", says="an attempt is recorded once")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("'anything', 5", "attempt_outcome_known"),
        ("NULL, 0", "attempt_no_from_one"),
        ("NULL, 1", "attempt_pkey|unique"),
    ],
)
def test_an_attempt_has_a_number_and_a_known_outcome(
    guarded: Guarded, change: str, says: str
) -> None:
    guarded.refuses(
        "INSERT INTO attempt (operation_id, fence, recorded_at, send_deadline, lease_until,"
        " account_identity, contract_hash, outcome, no) SELECT operation_id, fence, recorded_at,"
        f" send_deadline, lease_until, account_identity, contract_hash, {change} FROM attempt",
        says=says,
    )


def test_evidence_is_of_a_known_kind(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO evidence (operation_id, kind, started_at, body, facts)"
        " SELECT id, 'hearsay', clock_timestamp(), '', '{}' FROM operation",
        says="evidence_kind_known",
    )


def test_a_refund_of_the_provider_is_known_once(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO provider_refund (provider_account, ref, payment_id, amount_minor,"
        " provider_status, counts) SELECT provider_account, ref, payment_id, 1, 'succeeded', true"
        " FROM provider_refund",
        says="provider_refund_ref",
    )
