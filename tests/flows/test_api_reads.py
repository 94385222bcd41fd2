"""Asking what became of a refund: every outcome with its advice, pages, balances, waiting."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch, withdrawal
from refunds.api.waiting import at_rest
from refunds.domain import states
from refunds.ledger import POLICY, RECONCILER, Actor, claim, transition
from refunds.ledger.lapse import expire
from refunds.models import Operation, Order, Payment, Proposal
from refunds.proposal import Caller
from refunds.providers import registry
from tests import build
from tests.cast import Cast
from tests.flows.door import Door, wish
from tests.ledger.rulings import looked, ruled, signed, unknown_with_case
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


def seen(door: Door, operation: Operation) -> dict[str, Any]:
    answer = door.get(f"/refunds/{operation.pk}")
    assert answer.status == 200
    return answer.body


def advice(body: dict[str, Any]) -> tuple[str, str, bool, str, int | None]:
    return (
        body["outcome"],
        body["money_may_have_moved"],
        body["do_not_repeat"],
        body["next_action"],
        body["ask_again_after_seconds"],
    )


def sent(provider: SandboxProcess, cast: Cast, fault: str = "") -> Operation:
    """A refund that two people let happen and that was sent, with a fault on its way."""
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    if fault:
        provider.fault(fault)
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    return operation


def test_a_refund_from_wish_to_success(door: Door, cast: Cast, provider: SandboxProcess) -> None:
    provider.payment()
    operation = build.proposed(cast.echo)
    assert advice(seen(door, operation)) == ("awaiting_approval", "no", True, "ask_status", 60)
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    approved = seen(door, operation)
    assert advice(approved) == ("in_progress", "no", True, "ask_status", 5)
    assert approved["sentence"].startswith("Approved by ben for order version 1. Valid until ")
    dispatch.send(str(operation.pk))
    done = seen(door, operation)
    assert advice(done) == ("succeeded", "yes", True, "done", None)
    assert done["provider_refund_ref"] == provider.refunds("plain-main")[0]["id"]
    assert done["sentence"].startswith("The provider's record matches ours on every required field")


def test_a_lost_answer_is_unknown_and_must_not_be_repeated(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    operation = sent(provider, cast, "drop_after_commit")
    body = seen(door, operation)
    assert advice(body) == ("unknown", "maybe", True, "ask_status", 60)
    assert body["sentence"].startswith("Sent at ")
    assert body["sentence"].endswith(
        " UTC; no answer we can trust. It may or may not have happened. We are checking."
    )
    assert body["say"].startswith("Your refund of 79.00 USD was submitted. The confirmation is")
    repeated = door.propose()
    assert (repeated.status, repeated.code) == (409, "equivalent_unresolved")
    assert repeated.body["say"] == body["say"]
    assert repeated.body["state"] == "unknown"
    assert repeated.body["money_may_have_moved"] == "maybe"
    assert len(provider.refunds("plain-main")) == 1


def test_a_refusal_of_the_provider_is_told_to_a_person(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    provider.control("POST", "/dispute", {"account": "plain-main", "payment": "pi_4821"})
    dispatch.send(str(operation.pk))
    body = seen(door, operation)
    assert advice(body) == ("failed", "no", True, "tell_a_person", None)
    assert body["sentence"].startswith("The provider says no money moved")


def test_an_accepted_refund_is_pending(door: Door, cast: Cast, provider: SandboxProcess) -> None:
    provider.payment(account="plain-async")
    build.order(account="plain-async", ref="77", payment_ref="pi_4821")
    operation = build.authorized(cast.echo, cast.ben, order_ref="77")
    dispatch.send(str(operation.pk))
    body = seen(door, operation)
    assert advice(body) == ("pending", "maybe", True, "ask_status", 300)
    assert body["pending_reason"] == "provider_working"
    assert "ask_customer_for" not in body


def test_a_refund_that_waits_for_the_customer_says_so(door: Door, cast: Cast) -> None:
    operation = moved_to(cast, states.PENDING, pending_reason="needs_customer")
    body = seen(door, operation)
    assert (body["outcome"], body["next_action"]) == ("pending", "ask_customer")
    assert {body["ask_customer_for"], body["until"]} == {None}


def test_what_only_a_person_can_find_out_is_not_asked_for_every_minute(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    build.order("77", account="plain-blind", payment_ref="pi_blind")
    provider.payment("pi_blind", account="plain-blind")
    operation = build.authorized(cast.echo, cast.ben, order_ref="77", amount_minor=4000)
    provider.fault("drop_after_commit", account="plain-blind")
    dispatch.send(str(operation.pk))
    body = seen(door, operation)
    assert advice(body) == ("unknown", "maybe", True, "ask_status", 900)
    assert body["sentence"].endswith("Only a person can find out, and is asked to.")


def claimed(operation: Operation) -> None:
    """A worker may send it, and has not sent it yet."""
    account = registry.account(operation.provider_account)
    claim(
        operation.pk,
        worker="worker",
        identity=account.identity(),
        contract=account.contract,
        limits=settings.LIMITS,
    )


def moved_to(cast: Cast, state: str, **sets: Any) -> Operation:
    """An approved refund, claimed and moved on by the one door for state without a provider."""
    operation = build.authorized(cast.echo, cast.ben)
    claimed(operation)
    dispatched = Actor(states.DISPATCHER, "worker")
    for event, actor in {
        states.PENDING: (("accepted", dispatched),),
        states.RETURNED: (("confirmed", dispatched), ("taken_back", RECONCILER)),
        states.SUBMITTING: (),
    }[state]:
        operation = Operation.objects.get(pk=operation.pk)
        transition(operation, event, by=actor, sets=sets or None)
    return operation


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (states.SUBMITTING, ("in_progress", "maybe", True, "ask_status", 5)),
        (states.RETURNED, ("returned", "yes", True, "tell_a_person", None)),
    ],
)
def test_rarer_outcomes_have_their_own_advice(
    door: Door, cast: Cast, state: str, expected: tuple[Any, ...]
) -> None:
    assert advice(seen(door, moved_to(cast, state))) == expected


def test_another_amount_that_people_found_is_for_a_person_to_explain(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    case = unknown_with_case(provider, cast)
    assert case.operation is not None
    made = provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 3000},
    )
    looked(case.operation)
    signed(ruled(case, cast.omar, "different", ref=made["id"], confirmed_minor=3000), cast.ines)
    advised = ("mismatched", "yes", True, "tell_a_person", None)
    assert advice(seen(door, case.operation)) == advised


def test_ends_before_sending_say_whether_to_ask_again(door: Door, cast: Cast) -> None:
    rejected = build.proposed(cast.echo, amount_minor=100)
    approvals.reject(rejected.pk, cast.ben, reason="not our order at all", version=2)
    withdrawn = build.proposed(cast.echo, amount_minor=200)
    withdrawal.withdraw(withdrawn.pk, by=Caller(person=cast.ben))
    expired = build.proposed(cast.echo, amount_minor=300)
    expire(timezone.now() + timedelta(days=4), batch_max=10)
    assert advice(seen(door, rejected)) == ("rejected", "no", True, "tell_a_person", None)
    for operation, word in ((withdrawn, "withdrawn"), (expired, "expired")):
        assert advice(seen(door, operation)) == (
            word,
            "no",
            False,
            "propose_again_if_needed",
            None,
        )


def test_a_stale_approval_says_what_made_it_stale(door: Door, cast: Cast) -> None:
    operation = build.authorized(cast.echo, cast.ben)
    build.external_refund("4821", 1000)
    assert dispatch.send(str(operation.pk)) == "lapsed"
    body = seen(door, operation)
    assert advice(body) == ("stale", "no", True, "ask_status", 60)
    assert body["state"] == "awaiting_approval"
    assert body["reasons"] == [{"code": "order_changed", "says": "the order changed"}]
    assert (
        body["sentence"] == "The approval no longer applies: the order changed. Nothing was sent."
    )


def test_pages_hold_every_refund_once_in_the_order_of_their_ids(door: Door, cast: Cast) -> None:
    made = [str(build.proposed(cast.echo, amount_minor=100 + n).pk) for n in range(5)]
    found, after, pages = [], "", 0
    while pages < 10:
        body = door.get(f"/refunds?limit=2{after}").body
        found += [item["operation_id"] for item in body["items"]]
        pages += 1
        if body["next"] is None:
            break
        after = f"&after={body['next']}"
    assert (found, pages) == (made, 3)


def test_a_balance_has_its_operations(door: Door, cast: Cast, provider: SandboxProcess) -> None:
    operation = sent(provider, cast, "drop_after_commit")
    build.external_refund("4821", 1000)
    waiting = build.proposed(cast.echo, amount_minor=100)
    body = door.get("/orders/4821/refunds").body
    assert body["version"] == Order.objects.get().version
    [payment] = body["payments"]
    assert {name: payment[name] for name in payment if name.endswith("_minor")} == {
        "captured_minor": 12900,
        "refunded_minor": 1000,
        "held_minor": 7900,
        "refundable_minor": 4000,
    }
    assert [each["operation_id"] for each in payment["operations"]] == [
        str(operation.pk),
        str(waiting.pk),
    ]
    assert payment["operations"][0]["outcome"] == "unknown"


def test_an_order_that_is_not_there_is_not_found(door: Door) -> None:
    for ref in ("none", "%00", "48%0021", "x" * 300, "a/b"):
        answer = door.get(f"/orders/{ref}/refunds")
        assert (answer.status, answer.code) == (404, "not_found")


def test_reading_costs_the_same_however_many_there_are(door: Door, cast: Cast) -> None:
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as context:
            assert door.get(path).status == 200
        return len(context)

    first = build.proposed(cast.echo, amount_minor=100)
    door.get("/refunds")
    few = [queries("/refunds"), queries("/orders/4821/refunds")]
    for n in range(4):
        build.proposed(cast.echo, amount_minor=200 + n)
    assert [queries("/refunds"), queries("/orders/4821/refunds")] == few
    assert few == [6, 8]
    assert queries(f"/refunds/{first.pk}") == 6


Mover = Callable[[], Coroutine[Any, Any, None]]


def while_waiting(
    door: Door, path: str, move: Mover, content: str | None = None
) -> tuple[dict[str, Any], float]:
    """The answer of one waiting call and how long it took, with something happening meanwhile."""

    async def both() -> tuple[dict[str, Any], float]:
        client = AsyncClient()
        headers = {"Authorization": f"Bearer {door.key}"}
        began = time.monotonic()
        if content is None:
            call = client.get(f"/api/v1{path}", headers=headers)
        else:
            call = client.post(
                f"/api/v1{path}", content, content_type="application/json", headers=headers
            )
        answer, _ = await asyncio.gather(call, move())
        return json.loads(answer.content), time.monotonic() - began

    return async_to_sync(both)()


async def nothing() -> None:
    return None


def meanwhile(step: Callable[[], object]) -> Mover:
    """The step, as another worker does it: in a thread with a connection of its own."""

    def alone() -> None:
        try:
            step()
        finally:
            connection.close()

    async def move() -> None:
        await asyncio.sleep(0.2)
        await asyncio.to_thread(alone)

    return move


def moving(operation: Operation, event: str, by: Actor) -> Mover:
    return meanwhile(lambda: transition(Operation.objects.get(pk=operation.pk), event, by=by))


def test_a_status_call_waits_until_the_refund_has_ended(door: Door, cast: Cast) -> None:
    operation = moved_to(cast, states.SUBMITTING)
    move = moving(operation, "refused", Actor(states.DISPATCHER, "worker"))
    body, seconds = while_waiting(door, f"/refunds/{operation.pk}?wait_seconds=20", move)
    assert body["outcome"] == "failed"
    assert 0.15 < seconds < 5


def test_a_status_call_waits_for_people_when_it_is_asked_to(door: Door, cast: Cast) -> None:
    operation = build.proposed(cast.echo)
    move = moving(operation, "expired", POLICY)
    body, seconds = while_waiting(door, f"/refunds/{operation.pk}?wait_seconds=20", move)
    assert body["outcome"] == "expired"
    assert 0.15 < seconds < 5


def test_a_wait_ends_when_its_time_is_up(door: Door, cast: Cast) -> None:
    operation = moved_to(cast, states.SUBMITTING)
    body, seconds = while_waiting(door, f"/refunds/{operation.pk}?wait_seconds=1", nothing)
    assert body["outcome"] == "in_progress"
    assert 1 <= seconds < 4


def test_without_a_wait_the_answer_comes_at_once(door: Door, cast: Cast) -> None:
    operation = moved_to(cast, states.SUBMITTING)
    began = time.monotonic()
    assert seen(door, operation)["outcome"] == "in_progress"
    assert time.monotonic() - began < 1


def test_a_proposal_that_waits_for_people_is_answered_at_once(door: Door) -> None:
    body, seconds = while_waiting(door, "/refunds", nothing, json.dumps(wish(wait_seconds=...)))
    assert body["outcome"] == "awaiting_approval"
    assert seconds < 2


def test_a_repeated_proposal_waits_for_what_is_on_its_way(door: Door, cast: Cast) -> None:
    call = wish(wait_seconds=20)
    door.send("POST", "/refunds", call)
    operation = Operation.objects.get()
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    claimed(operation)
    move = moving(operation, "refused", Actor(states.DISPATCHER, "worker"))
    body, seconds = while_waiting(door, "/refunds", move, json.dumps(call))
    assert body["outcome"] == "failed"
    assert 0.15 < seconds < 5


def test_b121_a_call_covers_the_first_lookup_of_a_lost_answer(
    door: Door, cast: Cast, provider: SandboxProcess
) -> None:
    call = wish(wait_seconds=20)
    door.send("POST", "/refunds", call)
    operation = Operation.objects.get()
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    provider.payment()
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    assert seen(door, operation)["outcome"] == "unknown"

    look = meanwhile(lambda: reconciler.look_up(operation.pk))
    body, seconds = while_waiting(door, "/refunds", look, json.dumps(call))
    assert body["outcome"] == "succeeded"
    assert seconds < 5
    assert len(provider.refunds("plain-main")) == 1


def test_a_waiting_call_holds_no_database_connection(door: Door, cast: Cast) -> None:
    operation = moved_to(cast, states.SUBMITTING)
    parameters = connection.get_connection_params() | {"autocommit": True}
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    counts: list[int] = []
    # Whatever an earlier test left open is older than this; the call must open one of its own.
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        began_at = cursor.fetchone()[0]
    connection.close()

    async def count() -> None:
        async with await psycopg.AsyncConnection.connect(**parameters) as watcher:
            until = time.monotonic() + 0.8
            while time.monotonic() < until:
                rows = await watcher.execute(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    " AND backend_type = 'client backend' AND backend_start > %s",
                    [began_at],
                )
                row = await rows.fetchone()
                assert row is not None
                counts.append(row[0])
                await asyncio.sleep(0.02)

    while_waiting(door, f"/refunds/{operation.pk}?wait_seconds=1", count)
    assert counts.count(0) > len(counts) / 2, counts
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(
    ("state", "reason", "proposer_rests", "asker_rests"),
    [
        (states.AWAITING_APPROVAL, "", True, False),
        (states.AUTHORIZED, "", False, False),
        (states.SUBMITTING, "", False, False),
        (states.UNKNOWN, "", False, False),
        (states.PENDING, "provider_working", True, False),
        (states.PENDING, "needs_customer", True, True),
        (states.SUCCEEDED, "", True, True),
        (states.DENIED, "", True, True),
    ],
)
def test_whom_a_wait_can_still_help(
    state: str, reason: str, proposer_rests: bool, asker_rests: bool
) -> None:
    assert at_rest(state, reason, patient=False) is proposer_rests
    assert at_rest(state, reason, patient=True) is asker_rests


def test_b035_the_same_call_from_many_sides_at_once_is_one_operation(
    door: Door, cast: Cast
) -> None:
    call = wish(request_ref="return-17")
    sides = [door, Door(cast.echo), Door(cast.foxtrot), door]
    start = threading.Barrier(len(sides))

    def ask(side: Door) -> tuple[int, str]:
        try:
            start.wait(10)
            answer = side.send("POST", "/refunds", call)
            return answer.status, answer.body["operation_id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(len(sides)) as pool:
        answers = list(pool.map(ask, sides))
    assert sorted(status for status, _ in answers) == [200, 200, 200, 201]
    assert {operation for _, operation in answers} == {str(Operation.objects.get().pk)}
    assert Proposal.objects.count() == 2
