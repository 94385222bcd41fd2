"""Taking a wish back at the agents' door: before it is sent, by its own agent, as often as asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connection

from refunds import approvals, dispatch
from refunds.domain import states
from refunds.models import Event, Operation, Payment
from tests import build
from tests.cast import Cast
from tests.flows.door import Answer, Door, books
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


def withdraw(door: Door, operation: object, content: str = "", path: str = "") -> Answer:
    return door.call("POST", f"/refunds/{operation}/withdraw{path}", content)


def test_a_waiting_wish_is_withdrawn_with_its_reason_in_the_trail(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    answer = withdraw(door, operation.pk, json.dumps({"reason": "the customer keeps it"}))
    assert (answer.status, answer.body["outcome"]) == (200, "withdrawn")
    assert answer.body["next_action"] == "propose_again_if_needed"
    assert answer.body["do_not_repeat"] is False
    assert answer.body["say"].startswith("The request for this refund was withdrawn.")
    last = Event.objects.filter(operation=operation).order_by("-seq")[0]
    assert (last.event, last.actor_kind, last.actor) == ("withdrawn", states.CALLER, "agent:Echo")
    assert last.detail["reason"] == "the customer keeps it"


@pytest.mark.parametrize("content", ["", "{}", '{"reason": ""}'])
def test_a_reason_may_be_left_out(door: Door, cast: Cast, content: str) -> None:
    operation = build.proposed(cast.echo)
    assert withdraw(door, operation.pk, content).body["outcome"] == "withdrawn"


def test_withdrawing_again_is_the_same_result_and_changes_nothing(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    first = withdraw(door, operation.pk)
    before = books()
    again = withdraw(door, operation.pk, json.dumps({"reason": "another one"}))
    assert again.status == 200
    assert again.body | {"as_of": ""} == first.body | {"as_of": ""}
    assert books() == before


def test_another_key_of_the_agent_may_withdraw_what_it_proposed(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    rotated = Door(cast.echo, "refund:propose")
    assert withdraw(rotated, operation.pk).status == 200


def test_an_approved_wish_is_withdrawn_and_never_sent(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    assert withdraw(door, operation.pk).body["outcome"] == "withdrawn"
    assert dispatch.send(str(operation.pk)) == "gone"
    assert provider.refunds("plain-main") == []
    assert Payment.objects.get().held_minor == 0


@pytest.mark.parametrize(("fault", "state"), [("", "succeeded"), ("drop_after_commit", "unknown")])
def test_after_the_sending_it_is_a_conflict_that_says_how_it_stands(
    door: Door, cast: Cast, provider: SandboxProcess, fault: str, state: str
) -> None:
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    if fault:
        provider.fault(fault)
    dispatch.send(str(operation.pk))
    before = books()
    answer = withdraw(door, operation.pk)
    assert (answer.status, answer.code) == (409, "already_sent")
    assert (answer.body["outcome"], answer.body["state"]) == ("conflict", state)
    assert answer.body["operation_id"] == str(operation.pk)
    assert answer.body["do_not_repeat"] is True
    assert books() == before
    assert len(provider.refunds("plain-main")) == 1


def test_what_ended_otherwise_is_a_conflict_with_that_end(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    approvals.reject(operation.pk, cast.ben, reason="not our order at all", version=2)
    answer = withdraw(door, operation.pk)
    assert (answer.status, answer.code) == (409, "already_decided")
    assert answer.body["state"] == "rejected"


def test_what_another_proposed_is_not_there(door: Door, cast: Cast) -> None:
    foreign = build.proposed(cast.foxtrot)
    persons = build.proposed(cast.ada, amount_minor=100)
    moved = build.proposed(cast.echo, amount_minor=200)
    cast.echo.accounts = ["plain-forever"]
    cast.echo.save()
    before = books()
    for operation in (foreign.pk, persons.pk, moved.pk, uuid4()):
        answer = withdraw(door, operation)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.body["operation_id"] is None
    assert books() == before


def test_a_key_without_the_scope_withdraws_nothing(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    for scope in ("refund:read", "order:write"):
        answer = withdraw(Door(cast.echo, scope), operation.pk)
        assert (answer.status, answer.code) == (403, "scope_missing")
    assert Operation.objects.get().state == states.AWAITING_APPROVAL


@pytest.mark.parametrize(
    ("content", "path", "status", "code"),
    [
        ('{"reason": 7}', "", 422, "field_format"),
        ('{"because": "no"}', "", 422, "field_unknown"),
        ('{"reason": "a", "reason": "b"}', "", 400, "malformed_json"),
        ('{"reason": "\\u0000"}', "", 422, "text_control"),
        ('{"reason": "\\ud800"}', "", 400, "malformed_json"),
        ('{"reason": "card 4111 1111 1111 1111"}', "", 422, "text_card_number"),
        ("[]", "", 400, "malformed_json"),
        ("null", "", 400, "malformed_json"),
        ("{", "", 400, "malformed_json"),
        ("", "?force=1", 422, "field_unknown"),
    ],
)
def test_odd_withdrawals_are_refused_by_name(
    door: Door, cast: Cast, content: str, path: str, status: int, code: str
) -> None:
    operation = build.proposed(cast.echo)
    before = books()
    answer = withdraw(door, operation.pk, content, path)
    assert answer.status == status
    if code:
        assert answer.code == code
        assert books() == before


def test_a_reason_of_501_characters_is_too_long(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    answer = withdraw(door, operation.pk, json.dumps({"reason": "x" * 501}))
    assert (answer.status, answer.code) == (422, "text_too_long")


def test_many_withdrawals_at_once_are_one(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)

    def press(_: int) -> Answer:
        try:
            return withdraw(door, operation.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(press, range(16)))
    assert {answer.status for answer in answers} == {200}
    assert {answer.body["version"] for answer in answers} == {3}
    assert Event.objects.filter(operation=operation, event="withdrawn").count() == 1
