"""`aftersend-mcp` and the network: what is not known is said to be not known."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aftersend_mcp import stdio
from aftersend_mcp.door import Door
from mcp import Client
from mcp_types import TextContent

from tests import build
from tests.agents.scripted_rest import LOST, Script, scripted
from tests.agents.tool_door import ToolDoor, asked
from tests.cast import Cast

COMMAND = str(Path(sys.executable).parent / "aftersend-mcp")
RESULT: dict[str, Any] = {
    "operation_id": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a",
    "business_key": "refund:4821:request-1",
    "outcome": "awaiting_approval",
    "state": "awaiting_approval",
    "version": 2,
    "sentence": "Asked for by Echo. Nothing has been approved or sent.",
    "say": "We are reviewing your refund.",
    "money_may_have_moved": "no",
    "next_action": "ask_status",
    "do_not_repeat": True,
    "ask_again_after_seconds": 60,
    "order_ref": "4821",
    "payment_ref": "pi_4821",
    "amount_minor": 7900,
    "currency": "USD",
    "provider_refund_ref": None,
    "possible_repeat": False,
    "reasons": [],
    "created_at": "2026-11-29T14:02:03Z",
    "as_of": "2026-11-29T14:02:19Z",
}
PROBLEM = {
    "code": "amount_fraction",
    "detail": "79.0 is no whole number.",
    "what_to_do": "Send 7900.",
}


@pytest.fixture
def over_http(cast: Cast) -> ToolDoor:
    build.order()
    return ToolDoor(cast.echo)


@pytest.fixture
def rest() -> Iterator[Script]:
    with scripted() as script:
        yield script


def run(address: str, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, dict[str, Any]]]:
    """Each tool call in one run of the program: whether it is an error, and what it says."""

    async def talk() -> list[tuple[bool, dict[str, Any]]]:
        said = []
        async with Client(stdio.build(Door(address, "as_key"))) as client:
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                [content] = result.content
                assert isinstance(content, TextContent)
                said.append((result.is_error, json.loads(content.text)))
        return said

    return asyncio.run(talk())


def propose(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "propose_refund", asked(**changes)


def test_a_result_goes_through_as_it_is(rest: Script) -> None:
    rest.then(201, RESULT)
    assert run(rest.address, propose()) == [(False, RESULT)]
    [(method, path, body)] = rest.received
    assert (method, path) == ("POST", "/api/v1/refunds")
    assert json.loads(body).items() >= asked().items()


def test_a_conflict_is_a_result_and_a_refusal_is_an_error(rest: Script) -> None:
    conflict = RESULT | PROBLEM | {"outcome": "conflict", "status": 409}
    rest.then(409, conflict)
    rest.then(422, PROBLEM | {"status": 422, "outcome": None, "operation_id": None})
    assert run(rest.address, propose(), propose()) == [(False, conflict), (True, PROBLEM)]


def test_a_fraction_reaches_the_door_as_a_fraction(rest: Script) -> None:
    rest.then(422, PROBLEM)
    run(rest.address, propose(amount=..., amount_minor=79.0))
    assert '"amount_minor": 79.0' in rest.received[0][2]


def test_an_argument_that_no_tool_has_is_not_sent(rest: Script) -> None:
    [(is_error, said)] = run(rest.address, propose(approved=True))
    assert (is_error, said["code"], said["field"]) == (True, "field_unknown", "approved")
    assert rest.received == []


def test_an_answer_that_was_lost_is_not_called_a_failure(rest: Script) -> None:
    rest.answers.append(LOST)
    [(is_error, said)] = run(rest.address, propose())
    assert (is_error, said["code"]) == (True, "no_answer_to_proposal")
    assert "not known" in said["detail"]
    assert said["next_action"] == "repeat_same_call"
    assert "a person approves" not in said["detail"], "a rule of the installation may do"
    [(session_id, tool_call_id)] = rest.ids()
    assert session_id in said["what_to_do"]
    assert tool_call_id in said["what_to_do"]


def test_called_again_after_a_lost_answer_it_is_the_same_call(rest: Script) -> None:
    rest.answers.append(LOST)
    rest.then(200, RESULT)
    lost, found = run(rest.address, propose(), propose(reason_text="other words", amount="79"))
    assert (lost[0], found) == (True, (False, RESULT))
    assert len(set(rest.ids())) == 1


def test_the_ids_of_a_lost_answer_hold_in_another_run_too(rest: Script) -> None:
    rest.answers.append(LOST)
    rest.then(200, RESULT)
    run(rest.address, propose())
    [(session_id, tool_call_id)] = rest.ids()
    run(rest.address, propose(session_id=session_id, tool_call_id=tool_call_id))
    assert len(set(rest.ids())) == 1


def test_runs_are_sessions_of_their_own(rest: Script) -> None:
    rest.then(201, RESULT)
    rest.then(200, RESULT)
    run(rest.address, propose())
    run(rest.address, propose())
    assert len({session_id for session_id, _ in rest.ids()}) == 2


def test_after_a_withdrawal_the_same_words_are_a_new_call(rest: Script) -> None:
    rest.then(200, RESULT | {"outcome": "withdrawn", "state": "withdrawn"})
    rest.then(201, RESULT)
    assert run(rest.address, propose()) == [(False, RESULT)]
    assert len(set(rest.ids())) == 2


def test_a_reused_call_id_is_told_as_what_a_model_can_do(rest: Script) -> None:
    rest.then(409, PROBLEM | {"code": "tool_call_reused", "status": 409, "outcome": None})
    [(is_error, said)] = run(rest.address, propose())
    assert is_error
    assert "without session_id and tool_call_id" in said["what_to_do"]


def test_how_long_to_wait_comes_through_where_only_a_header_says_it(rest: Script) -> None:
    rest.then(503, PROBLEM | {"code": "database_unavailable", "next_action": "repeat_later"})
    rest.retry_after = "7"
    [(_, said)] = run(rest.address, propose())
    assert (said["code"], said["retry_after_seconds"]) == ("database_unavailable", 7)


STATUS, LIST, WITHDRAW = "get_refund_status", "list_order_refunds", "withdraw_refund"
OPERATION_ID = RESULT["operation_id"]


@pytest.mark.parametrize(
    ("name", "arguments", "code", "field"),
    [
        (STATUS, {"operation_id": "xyz"}, "field_format", "operation_id"),
        (STATUS, {"operation_id": 7}, "field_format", "operation_id"),
        (STATUS, {"operation_id": ""}, "field_format", "operation_id"),
        (STATUS, {"operation_id": OPERATION_ID, "wait_seconds": "8"}, "field_format", "wait_seconds"),
        (STATUS, {"operation_id": OPERATION_ID, "wait_seconds": True}, "field_format", "wait_seconds"),
        (STATUS, {"operation_id": OPERATION_ID, "wait_seconds": 1.0}, "field_format", "wait_seconds"),
        (STATUS, {"operation_id": OPERATION_ID, "wait_seconds": 26}, "field_format", "wait_seconds"),
        (STATUS, {"operation_id": OPERATION_ID, "session_id": "a b"}, "field_format", "session_id"),
        (STATUS, {"operation_id": OPERATION_ID, "session_id": 7}, "field_format", "session_id"),
        (LIST, {"order_ref": ""}, "field_format", "order_ref"),
        (LIST, {"order_ref": 4823}, "field_format", "order_ref"),
        (LIST, {"order_ref": "4" * 129}, "text_too_long", "order_ref"),
        (LIST, {"order_ref": "48\0"}, "text_control", "order_ref"),
        (LIST, {"order_ref": None}, "field_missing", "order_ref"),
        (WITHDRAW, {"operation_id": "xyz"}, "field_format", "operation_id"),
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_what_would_become_a_part_of_an_address_is_refused_like_over_http(
    rest: Script, over_http: ToolDoor, name: str, arguments: dict[str, Any], code: str, field: str
) -> None:
    [(is_error, said)] = run(rest.address, (name, arguments))
    assert (is_error, said["code"], said["field"]) == (True, code, field)
    assert said["what_to_do"]
    assert rest.received == []
    other = over_http.call(name, **arguments)
    assert (other.code, other.body["field"]) == (code, field)


@pytest.mark.parametrize("wait_seconds", [0, 25])
def test_every_spelling_of_an_id_asks_for_the_same_refund(rest: Script, wait_seconds: int) -> None:
    rest.then(200, RESULT)
    asked_for = {"operation_id": OPERATION_ID.upper(), "wait_seconds": wait_seconds}
    assert run(rest.address, (STATUS, asked_for)) == [(False, RESULT)]
    [(_, path, _)] = rest.received
    assert path.startswith(f"/api/v1/refunds/{OPERATION_ID}?wait_seconds={wait_seconds}&")


def test_an_order_reference_of_dots_names_no_other_address(rest: Script) -> None:
    rest.then(404, PROBLEM | {"code": "not_found"})
    run(rest.address, (LIST, {"order_ref": ".."}))
    assert rest.received[0][1] == "/api/v1/orders/%2E%2E/refunds"


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_that_lost_the_answer_is_no_failure_either(rest: Script, status: int) -> None:
    rest.answers.append((status, b"<html>Bad gateway</html>"))
    [(_, said)] = run(rest.address, propose())
    assert said["code"] == "no_answer_to_proposal"


def test_a_status_that_cannot_be_read_says_nothing_about_the_refund(rest: Script) -> None:
    rest.answers.append(LOST)
    [(_, said)] = run(rest.address, ("get_refund_status", {"operation_id": RESULT["operation_id"]}))
    assert said["code"] == "no_answer"
    assert "do not propose" in said["what_to_do"].lower()


def test_what_never_left_is_told_apart() -> None:
    with scripted() as gone:
        address = gone.address
    [(_, said)] = run(address, propose())
    assert said["code"] == "aftersend_not_reached"
    assert "recorded nothing" in said["detail"]


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "set AFTERSEND_URL"),
        ({"AFTERSEND_URL": "https://refunds.example"}, "AFTERSEND_TOKEN"),
        ({"AFTERSEND_URL": "refunds.example", "AFTERSEND_TOKEN": "as_x"}, "not an address"),
        ({"AFTERSEND_URL": "http://refunds.example", "AFTERSEND_TOKEN": "as_x"}, "use https"),
    ],
)
def test_a_wrong_environment_ends_the_start_with_a_sentence(
    environment: dict[str, str], sentence: str
) -> None:
    ran = subprocess.run(
        [COMMAND],
        env={"PATH": os.environ["PATH"]} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith("aftersend-mcp: ")
    assert sentence in ran.stderr
