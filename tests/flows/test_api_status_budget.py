"""Who asks too often is told to stop and to speak to the customer; nobody is ever told less."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.core.cache import caches

from refunds import approvals
from refunds.models import Operation
from refunds.queries import results
from tests import build
from tests.cast import Cast
from tests.flows.door import Door, wish

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


@pytest.fixture
def operation(door: Door, cast: Cast) -> Operation:
    return build.proposed(cast.echo)


def ask(door: Door, operation: Operation, session: str = "", **more: Any) -> dict[str, Any]:
    named = {"session_id": session} | more if session else more
    query = "&".join(f"{name}={value}" for name, value in named.items())
    answer = door.get(f"/refunds/{operation.pk}?{query}")
    assert answer.status == 200
    return answer.body


def asked(door: Door, operation: Operation, count: int, session: str = "") -> list[str]:
    return [ask(door, operation, session)["next_action"] for _ in range(count)]


def test_the_sixth_call_of_a_session_says_stop_and_is_as_true(
    door: Door, operation: Operation
) -> None:
    assert asked(door, operation, 5, "chat-1") == ["ask_status"] * 5
    body = ask(door, operation, "chat-1")
    assert body["next_action"] == results.STOP
    assert 590 <= body["ask_again_after_seconds"] <= 600
    assert (body["outcome"], body["state"], body["do_not_repeat"]) == (
        "awaiting_approval",
        "awaiting_approval",
        True,
    )
    assert body["say"].startswith("Your refund of 79.00 USD has been requested")


def test_every_session_and_every_refund_has_a_budget_of_its_own(
    door: Door, operation: Operation, cast: Cast
) -> None:
    asked(door, operation, 5, "chat-1")
    other = build.proposed(cast.echo, amount_minor=100)
    assert ask(door, operation, "chat-2")["next_action"] == "ask_status"
    assert ask(door, other, "chat-1")["next_action"] == "ask_status"
    assert ask(door, operation, "chat-1")["next_action"] == results.STOP


def test_a_session_keeps_its_budget_under_another_key_of_its_agent(
    door: Door, operation: Operation, cast: Cast
) -> None:
    asked(door, operation, 5, "chat-1")
    assert ask(Door(cast.echo), operation, "chat-1")["next_action"] == results.STOP
    assert ask(Door(cast.foxtrot), operation, "chat-1")["next_action"] == "ask_status"


def test_without_a_session_the_key_is_counted(door: Door, operation: Operation, cast: Cast) -> None:
    asked(door, operation, 5)
    assert ask(door, operation)["next_action"] == results.STOP
    assert ask(Door(cast.echo), operation)["next_action"] == "ask_status"


def test_a_wait_is_one_call_and_over_the_budget_nobody_waits(
    door: Door, operation: Operation
) -> None:
    began = time.monotonic()
    assert ask(door, operation, "chat-1", wait_seconds=1)["next_action"] == "ask_status"
    assert asked(door, operation, 4, "chat-1") == ["ask_status"] * 4
    assert ask(door, operation, "chat-1", wait_seconds=25)["next_action"] == results.STOP
    assert time.monotonic() - began < 10


def test_repeating_a_proposal_is_asking_and_uses_the_same_budget(door: Door) -> None:
    call = wish()
    first = door.send("POST", "/refunds", call)
    assert first.status == 201
    repeats = [door.send("POST", "/refunds", call) for _ in range(6)]
    assert [each.status for each in repeats] == [200] * 6
    assert [each.body["next_action"] for each in repeats] == ["ask_status"] * 5 + [results.STOP]
    made = Operation.objects.get()
    assert ask(door, made, call["session_id"])["next_action"] == results.STOP
    assert ask(door, made, "chat-1")["next_action"] == "ask_status"


def test_an_orders_list_is_no_status_call(door: Door, operation: Operation) -> None:
    for _ in range(8):
        listed = door.get("/orders/4821/refunds").body["payments"][0]["operations"]
        assert [each["next_action"] for each in listed] == ["ask_status"]
    assert ask(door, operation)["next_action"] == "ask_status"


def test_an_end_is_told_however_often_it_is_asked_for(
    door: Door, operation: Operation, cast: Cast
) -> None:
    asked(door, operation, 6, "chat-1")
    approvals.reject(operation.pk, cast.ben, reason="not our order at all", version=2)
    assert asked(door, operation, 8, "chat-1") == ["tell_a_person"] * 8


def test_the_budget_begins_anew_when_its_time_is_over(
    door: Door, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(door, operation, 6, "chat-1")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 590)
    assert 1 <= ask(door, operation, "chat-1")["ask_again_after_seconds"] <= 10
    monkeypatch.setattr(time, "time", lambda: real() + 601)
    assert asked(door, operation, 6, "chat-1") == ["ask_status"] * 5 + [results.STOP]


def test_a_lost_cache_costs_nobody_the_truth(
    door: Door, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*arguments: object, **more: object) -> None:
        raise ConnectionError("the cache does not answer")

    monkeypatch.setattr(type(caches["default"]), "add", away)
    assert asked(door, operation, 7, "chat-1") == ["ask_status"] * 7


@pytest.mark.parametrize("session", ["a b", "x" * 129, "%00", "a%0Ab", "chat-1%0A", ""])
def test_a_session_has_the_form_of_a_call_id(
    door: Door, operation: Operation, session: str
) -> None:
    answer = door.get(f"/refunds/{operation.pk}?session_id={session}")
    assert (answer.status, answer.code) == (422, "field_format")
    assert answer.body["field"] == "session_id"
