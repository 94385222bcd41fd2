"""What an approval was given for never changes; counters grow; the order's version has causes."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.ledger.guards.guarded import Guarded

# Every column of an operation is in one of these; a new one must be put into the right list.
MATERIAL = {
    "id": "gen_random_uuid()",
    "kind": "'charge'",
    "business_key": "business_key || 'x'",
    "order_id": "order_id + 1",
    "payment_id": "payment_id + 1",
    "provider_account": "'plain-forever'",
    "amount_minor": "amount_minor - 1",
    "currency": "'EUR'",
    "reason_code": "'other'",
    "reason_text": "reason_text || 'x'",
    "request_ref": "'another'",
    "requested_by_kind": "'person'",
    "requested_by_ref": "'ada'",
    "ticket_ref": "'T-1'",
    "run_ref": "'run'",
    "step_ref": "'step'",
    "claims": """'{"order_total_minor": 1}'""",
    "read_links": "ARRAY['https://shop.example']",
    "proposer_id": "1",
    "agent_id": "agent_id + 1",
    "agent_owner_id": "agent_owner_id + 1",
    "provider_key": "gen_random_uuid()::text",
    "body": "body || 'x'",
    "fingerprint": r"'\x00'",
    "policy_version": "'another'",
    "tier": "tier - 1",
    "quorum": "quorum - 1",
    "possible_repeat": "NOT possible_repeat",
    "separate_from_id": "id",
    "remedy_of_id": "id",
    "created_at": "created_at + interval '1 second'",
}
COUNTERS = ("round", "attempt_count", "lookup_started", "lookup_applied")
MOVES = (
    *("state", "version", "entered_at", "send_version", "failure_count", "halted"),
    *("blocks_equivalent", "stale_cause", "pending_reason", "expires_at", "not_before", "due_at"),
    *("unknown_since", "settled_at"),
)


def test_every_column_of_an_operation_is_material_a_counter_or_moves(guarded: Guarded) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'operation'"
        )
        columns = {row[0] for row in cursor.fetchall()}
    assert columns == {*MATERIAL, *COUNTERS, *MOVES}


@pytest.mark.parametrize("column", sorted(MATERIAL))
def test_what_was_approved_is_not_changed(guarded: Guarded, column: str) -> None:
    guarded.refuses(
        f"UPDATE operation SET {column} = {MATERIAL[column]} WHERE id = %s",
        [guarded.authorized.pk],
        # What is wrong in itself is refused before it is compared with what was there.
        says="operation_one_proposer"
        if column == "proposer_id"
        else "material facts are immutable",
    )


def test_the_proposer_of_a_persons_refund_is_not_changed_either(guarded: Guarded) -> None:
    guarded.refuses(
        "UPDATE operation SET proposer_id = 1, agent_id = NULL, agent_owner_id = NULL WHERE id = %s",
        [guarded.authorized.pk],
        says="material facts are immutable",
    )


@pytest.mark.parametrize("column", COUNTERS)
def test_a_counter_only_grows(guarded: Guarded, column: str) -> None:
    where = " WHERE id = %s"
    guarded.accepts(f"UPDATE operation SET {column} = {column} + 1{where}", [guarded.unknown.pk])
    guarded.refuses(
        f"UPDATE operation SET {column} = {column} - 1{where}",
        [guarded.unknown.pk],
        says="counters only grow",
    )


# Orders and payments


@pytest.mark.parametrize("step", [-1, 2])
def test_an_order_version_moves_by_one_only(guarded: Guarded, step: int) -> None:
    guarded.refuses("UPDATE orders SET version = version + %s", [step], says="moves by one")


def test_an_order_version_has_its_cause(guarded: Guarded) -> None:
    guarded.refuses("UPDATE orders SET version = version + 1", says="orders_version_has_cause")
    caused = (
        "WITH bump AS (UPDATE orders SET version = version + 1 RETURNING id, version) "
        "INSERT INTO order_move (order_id, version, cause, actor, detail, at)"
        " SELECT id, version{off}, 'feed', 'test', '{{}}', clock_timestamp() FROM bump"
    )
    guarded.accepts(caused.format(off=""))
    guarded.refuses(caused.format(off=" + 1"), says="without its order|orders_version_has_cause")


def test_a_cause_without_its_order_version_is_refused(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO order_move (order_id, version, cause, actor, detail, at)"
        " SELECT id, version + 1, 'feed', 'test', '{}', clock_timestamp() FROM orders",
        says="without its order",
    )


def test_an_order_version_has_one_cause(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO order_move (order_id, version, cause, actor, detail, at)"
        " SELECT id, version, 'feed', 'test', '{}', clock_timestamp() FROM orders",
        says="order_move_version",
    )


def test_a_feed_does_not_run_backwards(guarded: Guarded) -> None:
    guarded.refuses(
        "DO $$ BEGIN UPDATE orders SET feed_seq = 9; UPDATE orders SET feed_seq = 8; END $$",
        says="its feed only forward",
    )


def test_an_order_keeps_its_name(guarded: Guarded) -> None:
    guarded.refuses("UPDATE orders SET ref = '4822'", says="an order version moves by one")


@pytest.mark.parametrize(
    "change",
    [
        "order_id = order_id + 1",
        "provider_account = 'plain-forever'",
        "ref = 'pi_4822'",
        "currency = 'EUR'",
    ],
)
def test_a_payment_keeps_its_order_account_and_currency(guarded: Guarded, change: str) -> None:
    guarded.refuses(f"UPDATE payment SET {change}", says="a payment keeps its order")


# Money and identity


@pytest.mark.parametrize("column", ["captured_minor", "refunded_minor", "held_minor"])
def test_no_money_column_goes_below_zero(guarded: Guarded, column: str) -> None:
    guarded.refuses(f"UPDATE payment SET {column} = -1", says="payment_amounts_not_negative")


def test_more_held_than_captured_is_storable(guarded: Guarded) -> None:
    """Truth from outside must have a place: the cap is in the claim, not in the columns."""
    guarded.accepts("UPDATE payment SET refunded_minor = captured_minor + 1")


def test_a_payment_is_in_a_known_state(guarded: Guarded) -> None:
    guarded.refuses("UPDATE payment SET state = 'fine'", says="payment_state_known")


def test_a_reservation_is_in_a_known_state(guarded: Guarded) -> None:
    guarded.refuses("UPDATE reservation SET state = 'gone'", says="reservation_state_known")


def second(guarded: Guarded, **changes: str) -> str:
    """A whole second operation with its first event, like the one that is waiting."""
    copied = guarded.copy_of_operation(version="1", state="'proposed'", **changes)
    return (
        f"WITH made AS ({copied} RETURNING id) "
        "INSERT INTO event (operation_id, seq, event, from_state, to_state, actor_kind, actor,"
        " detail, at) SELECT id, 1, 'proposed', 'none', 'proposed', 'caller', 'test', '{}',"
        " clock_timestamp() FROM made"
    )


def test_a_payment_and_amount_have_one_live_operation(guarded: Guarded) -> None:
    pk = [guarded.waiting.pk]
    guarded.accepts(second(guarded, amount_minor="amount_minor + 1"), pk)
    guarded.accepts(second(guarded, blocks_equivalent="false"), pk)
    guarded.refuses(second(guarded), pk, says="operation_one_live_equivalent")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"business_key": "business_key"}, "operation_business_key"),
        ({"business_key": "'refund:4821:another'"}, "operation_business_key"),
        ({"request_ref": "request_ref"}, "operation_request"),
        ({"amount_minor": "0"}, "operation_amount_positive"),
        ({"amount_minor": "-1"}, "operation_amount_positive"),
        ({"provider_key": "'short'"}, "operation_key_form"),
        ({"provider_key": "repeat('a', 35) || E'\\n'"}, "operation_key_form"),
        ({"agent_id": "NULL"}, "operation_one_proposer"),
        ({"agent_owner_id": "NULL"}, "operation_one_proposer"),
        ({"proposer_id": "agent_owner_id"}, "operation_one_proposer"),
    ],
)
def test_an_operation_with_a_borrowed_or_missing_identity_is_refused(
    guarded: Guarded, changes: dict[str, str], says: str
) -> None:
    values = {"amount_minor": "amount_minor + 1"} | changes
    guarded.refuses(second(guarded, **values), [guarded.waiting.pk], says=says)


def test_a_call_stands_for_one_operation(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO proposal (operation_id, agent_id, person_id, session_id, tool_call_id,"
        " arguments_digest, created) SELECT operation_id, agent_id, person_id, session_id,"
        " tool_call_id, arguments_digest, false FROM proposal",
        says="proposal_call_of_(agent|person)",
    )


def test_a_call_has_one_caller(guarded: Guarded) -> None:
    guarded.refuses(
        "INSERT INTO proposal (operation_id, session_id, tool_call_id, arguments_digest, created)"
        " SELECT operation_id, session_id, 'another', arguments_digest, false FROM proposal",
        says="proposal_one_caller",
    )
