"""Which call a tool call is: repeats and conflicts are results, and make no second refund."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from aftersend_mcp import identity
from django.utils import timezone

from refunds import approvals, policies
from refunds.models import Operation, Person
from tests import build
from tests.agents.tool_door import ToolAnswer, ToolDoor
from tests.cast import Cast

pytestmark = pytest.mark.django_db

HOST: dict[str, Any] = {"claudecode/toolUseId": "toolu_1", "openai/session": "chat 8812/ü"}


@pytest.fixture
def door(cast: Cast) -> ToolDoor:
    build.order()
    return ToolDoor(cast.echo)


def one_refund(*answers: ToolAnswer) -> None:
    assert not any(answer.is_error for answer in answers), answers
    [operation] = Operation.objects.all()
    assert {answer.body["operation_id"] for answer in answers} == {str(operation.pk)}


def outcome(answer: ToolAnswer) -> str:
    return str(answer.body["outcome"])


def test_the_same_words_are_the_same_call(door: ToolDoor) -> None:
    first, again = door.propose(), door.propose()
    other_words = door.propose(reason_text="they broke", ticket_ref="T-9", amount="79")
    one_refund(first, again, other_words)
    assert {outcome(each) for each in (first, again, other_words)} == {"awaiting_approval"}


@pytest.mark.parametrize(
    "changes",
    [{"amount": ..., "amount_minor": 7900}, {"reason_code": "other"}, {"session_id": "b"}],
)
def test_an_equal_wish_in_another_call_is_a_conflict_and_that_is_a_result(
    door: ToolDoor, changes: dict[str, Any]
) -> None:
    first, other = door.propose(), door.propose(**changes)
    one_refund(first, other)
    assert outcome(other) == "conflict"
    assert other.body["code"] == "equivalent_unresolved"
    assert other.body["do_not_repeat"] is True
    assert other.body["say"] == first.body["say"]


def test_the_call_id_of_the_host_is_the_call(door: ToolDoor) -> None:
    first = door.propose(HOST)
    again = door.propose(HOST, reason_text="other words")
    one_refund(first, again)
    assert outcome(again) == "awaiting_approval"


def test_a_reused_call_id_is_not_recorded_and_the_way_out_is_one_that_a_model_may_go(
    door: ToolDoor,
) -> None:
    ids: dict[str, Any] = {"session_id": "stdio-1", "tool_call_id": "args.1"}
    door.propose(**ids)
    reused = door.propose(amount="12.00", **ids)
    assert reused.code == "tool_call_reused"
    assert "without session_id and tool_call_id" in reused.body["what_to_do"]
    assert "say" not in reused.body
    assert Operation.objects.count() == 1
    assert outcome(door.propose(amount="12.00")) == "awaiting_approval"


@pytest.mark.parametrize("odd", [7, "", None, {"id": "toolu_1"}])
def test_an_id_of_the_host_that_is_no_text_counts_as_not_sent(door: ToolDoor, odd: Any) -> None:
    first = door.propose({"claudecode/toolUseId": odd})
    again = door.propose()
    one_refund(first, again)
    assert outcome(again) == "awaiting_approval", "the same words are the same call"


def test_the_ids_that_an_answer_told_to_send_win_over_the_host(door: ToolDoor) -> None:
    ids = {"session_id": "stdio-1", "tool_call_id": "args.1"}
    first = door.propose(HOST, **ids)
    again = door.propose(HOST | {"claudecode/toolUseId": "toolu_2"}, **ids)
    one_refund(first, again)
    assert outcome(again) == "awaiting_approval"


def test_a_named_wish_is_one_refund_whatever_its_calls_are_called(door: ToolDoor) -> None:
    first = door.propose(request_ref="return-17")
    again = door.propose(request_ref="return-17", reason_code="other")
    other_session = door.propose(request_ref="return-17", session_id="b")
    one_refund(first, again, other_session)
    assert outcome(again) == outcome(other_session) == "awaiting_approval"
    reused = door.propose(request_ref="return-17", amount="12.00")
    assert reused.code == "request_ref_reused"


def test_another_agent_gets_the_same_refund(door: ToolDoor, cast: Cast) -> None:
    first, other = door.propose(), ToolDoor(cast.foxtrot).propose()
    one_refund(first, other)
    assert outcome(other) == "conflict"


def test_what_was_withdrawn_may_be_asked_for_again_in_the_same_words(door: ToolDoor) -> None:
    first = door.propose()
    withdrawn = door.call("withdraw_refund", operation_id=first.body["operation_id"])
    assert (outcome(withdrawn), withdrawn.body["next_action"]) == (
        "withdrawn",
        "propose_again_if_needed",
    )
    second = door.propose()
    assert second.body["operation_id"] != first.body["operation_id"]
    assert door.propose().body["operation_id"] == second.body["operation_id"]


def test_a_model_that_loops_on_a_refusal_comes_to_an_end(
    door: ToolDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "ANEW_MAX", 2)
    too_much = [door.propose(amount="999.00") for _ in range(4)]
    assert {outcome(answer) for answer in too_much} == {"denied"}
    assert Operation.objects.count() == 2
    assert outcome(door.propose(amount="999.00", request_ref="return-17")) == "denied"
    assert Operation.objects.count() == 3, "a wish with a name of its own is looked at"


def test_a_withdrawn_wish_that_has_a_name_stays_withdrawn(door: ToolDoor) -> None:
    first = door.propose(request_ref="return-17")
    door.call("withdraw_refund", operation_id=first.body["operation_id"])
    again = door.propose(request_ref="return-17")
    one_refund(first, again)
    assert outcome(again) == "withdrawn"


def test_long_after_the_end_the_same_words_are_a_new_wish(door: ToolDoor) -> None:
    first = door.propose()
    operation = Operation.objects.get()
    approvals.reject(
        operation.pk,
        Person.objects.get(username="ben"),
        reason="the photo shows another item",
        version=operation.version,
    )
    rejected = door.propose()
    one_refund(first, rejected)
    assert outcome(rejected) == "rejected"
    window = timedelta(seconds=policies.current().repeat_window_seconds + 1)
    Operation.objects.update(settled_at=timezone.now() - window)
    assert door.propose().body["operation_id"] != first.body["operation_id"]


def test_what_an_order_has_is_listed(door: ToolDoor) -> None:
    made = door.propose()
    listed = door.call("list_order_refunds", order_ref="4821").body
    [payment] = listed["payments"]
    assert [each["operation_id"] for each in payment["operations"]] == [made.body["operation_id"]]
