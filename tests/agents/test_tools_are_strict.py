"""The MCP tools in this process: strict as the REST door, and every refusal readable."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from refunds import credentials
from refunds.models import Operation
from tests import build
from tests.agents.tool_door import ToolDoor, asked, problem
from tests.cast import Cast
from tests.flows.door import nothing_changes

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> ToolDoor:
    build.order()
    return ToolDoor(cast.echo)


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ('"amount_minor": "79.00"', "amount_format", "amount_minor"),
        ('"amount_minor": "7900"', "amount_format", "amount_minor"),
        ('"amount_minor": 79.0', "amount_fraction", "amount_minor"),
        ('"amount_minor": 79.00', "amount_fraction", "amount_minor"),
        ('"amount_minor": 7.9e3', "amount_fraction", "amount_minor"),
        ('"amount_minor": true', "amount_format", "amount_minor"),
        ('"amount_minor": [7900]', "amount_format", "amount_minor"),
        ('"amount_minor": 1000000000000', "amount_too_large", "amount_minor"),
        ('"amount_minor": 100000000000000000000', "amount_too_large", "amount_minor"),
        ('"amount_minor": -7900', "amount_negative", "amount_minor"),
        ('"amount_minor": 0', "amount_zero", "amount_minor"),
        ('"amount": 79.00', "amount_format", "amount"),
        ('"amount": 79', "amount_format", "amount"),
        ('"amount": true', "amount_format", "amount"),
        ('"amount": "79,00"', "amount_format", "amount"),
        ('"amount": "79.001"', "amount_fraction", "amount"),
        ('"amount": "79.00", "amount_minor": 7900', "amount_twice", "amount"),
        ('"reason_code": "damaged_item"', "field_missing", "amount_minor"),
        ('"amount": "79.00", "currency": "usd"', "currency_unknown", "currency"),
        ('"amount": "79.00", "currency": "XXX"', "currency_unknown", "currency"),
        ('"amount": "79.00", "currency": 840', "field_format", "currency"),
        ('"amount": "79.00", "amuont": "79.00"', "field_unknown", "amuont"),
        ('"amount": "79.00", "approved": true', "field_unknown", "approved"),
        ('"amount": "79.00", "order_ref": null', "field_missing", "order_ref"),
        ('"amount": "79.00", "order_ref": 4821', "field_format", "order_ref"),
        ('"amount": "79.00", "order_ref": "nowhere"', "order_unknown", "order_ref"),
        ('"amount": "79.00", "reason_code": "fraudulent"', "reason_code_unknown", "reason_code"),
        ('"amount": "79.00", "wait_seconds": 1.5', "field_format", "wait_seconds"),
        ('"amount": "79.00", "wait_seconds": 26', "field_format", "wait_seconds"),
        ('"amount": "79.00", "wait_seconds": true', "field_format", "wait_seconds"),
        ('"amount": "79.00", "claims": {"rate": 0.5}', "field_format", "claims.rate"),
        ('"amount": "79.00", "session_id": "a b"', "field_format", "session_id"),
        ('"amount": "79.00", "tool_call_id": "call_1"', "field_missing", "session_id"),
        ('"amount": "79.00", "reason_text": "4242 4242 4242 4242"', "text_card_number", "reason_text"),
    ],
)  # fmt: skip
def test_each_wrong_argument_has_its_own_code(
    door: ToolDoor, sent: str, code: str, field: str
) -> None:
    arguments = asked(**dict.fromkeys(["amount", *json.loads("{" + sent + "}")], ...))
    rest = json.dumps(arguments)
    with nothing_changes():
        answer = door.send("propose_refund", "{" + sent + ", " + rest[1:])
    assert (answer.code, answer.body["field"]) == (code, field)


def test_an_amount_as_text_is_that_amount(door: ToolDoor) -> None:
    answer = door.propose(amount="79.00")
    assert answer.body["amount_minor"] == 7900
    assert Operation.objects.get().amount_minor == 7900


def test_a_name_that_stands_twice_is_refused_before_any_tool_sees_it(door: ToolDoor) -> None:
    call = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        | {"params": {"name": "propose_refund", "arguments": asked()}}
    )
    with nothing_changes():
        answer = door.post(call.replace('"amount": "79.00"', '"amount": "1.00", "amount": "79.00"'))
    assert (answer.status_code, problem(answer)["code"]) == (400, "malformed_json")


def test_a_body_beyond_64_kib_is_refused(door: ToolDoor) -> None:
    with nothing_changes():
        answer = door.post(b" " * 65_537)
    assert (answer.status_code, problem(answer)["code"]) == (413, "body_too_large")


def test_a_tool_that_does_not_exist_is_named(door: ToolDoor) -> None:
    answer = door.call("approve_refund", operation_id="x")
    assert answer.code == "tool_unknown"
    assert "propose_refund" in answer.body["what_to_do"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("get_refund_status", {"operation_id": "no-id"}, "field_format"),
        ("get_refund_status", {}, "field_missing"),
        ("get_refund_status", {"operation_id": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"}, "not_found"),
        ("list_order_refunds", {"order_ref": "nowhere"}, "not_found"),
        ("list_order_refunds", {"order_ref": "4821", "all": True}, "field_unknown"),
        ("withdraw_refund", {"operation_id": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"}, "not_found"),
        ("withdraw_refund", {"operation_id": 7}, "field_format"),
    ],
)  # fmt: skip
def test_the_other_tools_refuse_by_name_too(
    door: ToolDoor, name: str, arguments: dict[str, Any], code: str
) -> None:
    assert door.call(name, **arguments).code == code


def test_a_revoked_key_is_refused_at_the_very_next_call(door: ToolDoor) -> None:
    assert not door.propose().is_error
    credentials.revoke(door.credential)
    answer = door.post(b"{}")
    assert (answer.status_code, problem(answer)["code"]) == (401, "credential_revoked")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("header", "code"),
    [("", "credential_missing"), ("Basic x", "credential_invalid"), ("Bearer as_x", "credential_invalid")],
)  # fmt: skip
def test_no_key_no_tools(door: ToolDoor, header: str, code: str) -> None:
    answer = door.post(b"{}", Authorization=header)
    assert (answer.status_code, problem(answer)["code"]) == (401, code)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "attacker.example"}, 421, "host_unknown"),
        ({"Origin": "https://attacker.example"}, 403, "origin_unknown"),
        ({"Content_Type": "text/plain"}, 415, "not_json"),
    ],
)
def test_a_page_of_another_site_cannot_call_tools(
    door: ToolDoor, headers: dict[str, str], status: int, code: str
) -> None:
    answer = door.post(b"{}", **headers)
    assert (answer.status_code, problem(answer)["code"]) == (status, code)


def test_a_key_in_the_clear_is_refused_where_pages_want_https(
    door: ToolDoor, settings: Settings
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = door.post(b"{}")
    assert (answer.status_code, problem(answer)["code"]) == (403, "https_needed")
    assert b"https_needed" not in door.post(b"{}", X_Forwarded_Proto="https").content


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_hold_open(door: ToolDoor, method: str) -> None:
    answer = door.post(b"", method=method)
    assert (answer.status_code, problem(answer)["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "POST"


def test_an_order_of_a_foreign_account_is_answered_like_one_that_does_not_exist(
    door: ToolDoor,
) -> None:
    made = door.propose().body["operation_id"]
    door.agent.accounts = ["stripe-main"]
    door.agent.save()
    with nothing_changes():
        assert door.propose().code == "not_found"
        assert door.propose(amount="12.00").code == "order_unknown"
        assert door.call("get_refund_status", operation_id=made).code == "not_found"
        assert door.call("list_order_refunds", order_ref="4821").code == "not_found"
        assert door.call("withdraw_refund", operation_id=made).code == "not_found"


def test_a_key_does_only_what_its_scopes_say(cast: Cast) -> None:
    build.order()
    reads, proposes = ToolDoor(cast.echo, "refund:read"), ToolDoor(cast.echo, "refund:propose")
    with nothing_changes():
        assert reads.propose().code == "scope_missing"
        assert proposes.call("list_order_refunds", order_ref="4821").code == "scope_missing"
    made = proposes.propose().body["operation_id"]
    assert proposes.call("get_refund_status", operation_id=made).code == "scope_missing"
    assert reads.call("withdraw_refund", operation_id=made).code == "scope_missing"
    assert reads.call("get_refund_status", operation_id=made).body["state"] == "awaiting_approval"


def test_a_key_that_calls_too_often_is_told_so_by_the_tool(
    door: ToolDoor, settings: Settings
) -> None:
    settings.LIMITS = replace(settings.LIMITS, calls_per_minute_max=1)
    door.call("list_order_refunds", order_ref="4821")
    answer = door.call("list_order_refunds", order_ref="4821")
    assert answer.code == "rate_limited"
    assert answer.body["next_action"] == "repeat_later"
    assert 1 <= answer.body["retry_after_seconds"] <= 60
    assert "repeat the very same call" in answer.body["what_to_do"]


def test_asking_too_often_ends_with_what_to_tell_the_customer(
    door: ToolDoor, settings: Settings
) -> None:
    settings.LIMITS = replace(settings.LIMITS, status_calls_max=1)
    made = door.propose().body["operation_id"]
    asked_once = door.call("get_refund_status", operation_id=made, session_id="chat-1")
    asked_twice = door.call("get_refund_status", operation_id=made, session_id="chat-1")
    assert asked_once.body["next_action"] == "ask_status"
    assert asked_twice.body["next_action"] == "stop_and_tell_customer"
    assert asked_twice.body["say"]
