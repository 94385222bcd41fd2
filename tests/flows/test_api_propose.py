"""A wish through the agents' door: recorded once, whatever is repeated, and answered plainly."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from refunds import approvals, credentials, withdrawal
from refunds.domain import states
from refunds.models import Operation, Person, PolicyCheck, Proposal
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.flows.door import Door, books, wish

pytestmark = pytest.mark.django_db

RESULT_FIELDS = {
    "operation_id",
    "business_key",
    "outcome",
    "state",
    "version",
    "sentence",
    "say",
    "money_may_have_moved",
    "next_action",
    "do_not_repeat",
    "ask_again_after_seconds",
    "order_ref",
    "payment_ref",
    "amount_minor",
    "currency",
    "provider_refund_ref",
    "possible_repeat",
    "reasons",
    "created_at",
    "as_of",
}


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


def ended(operation: Operation, state: str) -> None:
    """Bring a waiting operation to an end by the product's own verbs."""
    if state == states.WITHDRAWN:
        withdrawal.withdraw(operation.pk, by=Caller(person=Person.objects.get(username="ada")))
    else:
        lead = Person.objects.get(username="ben")
        operation.refresh_from_db()
        approvals.reject(
            operation.pk, lead, reason="the photo shows another item", version=operation.version
        )


def test_a_wish_is_recorded_and_waits_for_a_person(door: Door) -> None:
    answer = door.propose(request_ref="return-17")
    assert answer.status == 201
    assert answer.body.keys() == RESULT_FIELDS
    stored = Operation.objects.get()
    assert answer.body["operation_id"] == str(stored.pk)
    assert answer.headers["Location"] == f"/api/v1/refunds/{stored.pk}"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body["say"].startswith(
        "Your refund of 79.00 USD has been requested and is being reviewed. We will update you by "
    )
    changing = {"created_at": "", "as_of": "", "operation_id": "", "say": ""}
    assert answer.body | changing == {
        "operation_id": "",
        "business_key": "refund:4821:return-17",
        "outcome": "awaiting_approval",
        "state": "awaiting_approval",
        "version": 2,
        "sentence": "Asked for by Echo. Nothing has been approved or sent.",
        "say": "",
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
        "created_at": "",
        "as_of": "",
    }
    assert (stored.agent_id, stored.requested_by_ref) == (door.agent.pk, "cus_204")


def test_b121_the_same_call_again_is_the_same_operation(door: Door) -> None:
    call = wish()
    first = door.send("POST", "/refunds", call)
    before = books()
    again = door.send("POST", "/refunds", call)
    assert (first.status, again.status) == (201, 200)
    assert again.body["operation_id"] == first.body["operation_id"]
    assert again.body["next_action"] == "ask_status"
    assert books() == before


def test_b123_a_replayed_transcript_meets_the_operations_it_made(door: Door) -> None:
    transcript = [wish(amount_minor=amount) for amount in (1000, 2000, 3000)]
    made = [door.send("POST", "/refunds", call).body["operation_id"] for call in transcript]
    before = books()
    met = [door.send("POST", "/refunds", call).body["operation_id"] for call in transcript]
    assert met == made
    assert books() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_minor": ..., "amount": "79.00"},
        {"amount_minor": ..., "amount": "79"},
        {"payment_ref": "pi_4821"},
        {"reason_text": "other words", "ticket_ref": "T-9", "run_ref": "run-2", "step_ref": "7"},
        {"claims": {"order_total_minor": 1}, "read_links": ["https://shop.example/orders/4821"]},
        {"requested_by": {"kind": "system", "ref": "returns"}},
    ],
)
def test_what_is_no_argument_does_not_change_the_call(door: Door, changes: dict[str, Any]) -> None:
    first = door.propose(tool_call_id="call_x")
    before = books()
    again = door.propose(tool_call_id="call_x", **changes)
    assert again.status == 200
    assert again.body["operation_id"] == first.body["operation_id"]
    assert books() == before


def test_the_order_of_names_does_not_matter(door: Door) -> None:
    call = wish()
    first = door.send("POST", "/refunds", call)
    again = door.send("POST", "/refunds", dict(reversed(call.items())))
    assert (again.status, again.body["operation_id"]) == (200, first.body["operation_id"])


def test_a_new_key_of_the_same_agent_keeps_the_identity_of_its_calls(door: Door) -> None:
    call = wish()
    first = door.send("POST", "/refunds", call)
    rotated = Door(door.agent)
    credentials.revoke(door.credential)
    again = rotated.send("POST", "/refunds", call)
    assert (again.status, again.body["operation_id"]) == (200, first.body["operation_id"])


# Everything by which a caller could take another refund for the one that it asked for.
NOT_TOLD_OF_ANOTHER = RESULT_FIELDS - {"operation_id", "outcome", "next_action"}


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"amount_minor": 7901}, ""),
        ({"currency": "EUR"}, ""),
        ({"reason_code": "goodwill"}, ": its reason_code is another"),
    ],
)
def test_a_call_id_with_other_arguments_is_told_nothing_of_the_other_refund(
    door: Door, changes: dict[str, Any], differs: str
) -> None:
    first = door.propose(tool_call_id="call_x")
    before = books()
    other = door.propose(tool_call_id="call_x", **changes)
    assert (other.status, other.code) == (409, "tool_call_reused")
    assert other.body["operation_id"] == first.body["operation_id"]
    assert (other.body["outcome"], other.body["next_action"]) == ("conflict", "correct_and_propose")
    assert not other.body.keys() & NOT_TOLD_OF_ANOTHER
    assert other.body["detail"] == (
        "Call call_x of this session asked for something else before: 79.00 USD of payment pi_4821,"
        f" order 4821. What this one asks for was not recorded{differs}."
    )
    assert "propose it as a new call" in other.body["what_to_do"]
    assert books() == before


def test_the_call_id_of_another_agent_is_another_call(door: Door, cast: Cast) -> None:
    door.propose(tool_call_id="call_x", amount_minor=1000)
    other = Door(cast.foxtrot).propose(tool_call_id="call_x", amount_minor=2000)
    assert other.status == 201
    assert Operation.objects.count() == 2


def test_one_request_ref_is_one_operation_whoever_asks(door: Door, cast: Cast) -> None:
    first = door.propose(request_ref="return-17")
    again = door.propose(request_ref="return-17")
    others = Door(cast.foxtrot).propose(request_ref="return-17")
    assert [again.status, others.status] == [200, 200]
    assert {again.body["operation_id"], others.body["operation_id"]} == {first.body["operation_id"]}
    assert Operation.objects.count() == 1
    assert Proposal.objects.count() == 3


def test_a_request_ref_with_another_amount_is_a_conflict(door: Door) -> None:
    first = door.propose(request_ref="return-17")
    before = books()
    other = door.propose(request_ref="return-17", amount_minor=100)
    assert (other.status, other.code) == (409, "request_ref_reused")
    assert other.body["operation_id"] == first.body["operation_id"]
    assert other.body["next_action"] == "correct_and_propose"
    assert not other.body.keys() & NOT_TOLD_OF_ANOTHER
    assert "return-17 names another refund: 79.00 USD of payment pi_4821" in other.body["detail"]
    assert books() == before


def test_b148_an_open_equivalent_is_answered_before_anything_changes(door: Door) -> None:
    first = door.propose()
    before = books()
    second = door.propose()
    assert (second.status, second.code) == (409, "equivalent_unresolved")
    assert second.body["operation_id"] == first.body["operation_id"]
    assert (second.body["state"], second.body["version"]) == ("awaiting_approval", 2)
    assert books() == before


def test_b035_the_same_wish_sent_twice_is_one_row(door: Door) -> None:
    call = json.dumps(wish())
    door.call("POST", "/refunds", call)
    door.call("POST", "/refunds", call)
    assert Operation.objects.count() == 1


def test_an_equal_refund_that_ended_lately_is_already_done(door: Door) -> None:
    first = door.propose()
    ended(Operation.objects.get(), states.REJECTED)
    before = books()
    again = door.propose()
    assert again.status == 200
    assert again.body["outcome"] == "already_done"
    assert again.body["operation_id"] == first.body["operation_id"]
    assert (again.body["state"], again.body["next_action"]) == ("rejected", "tell_a_person")
    assert again.body["do_not_repeat"] is True
    assert "the photo shows another item" in again.body["sentence"]
    # Only the call is remembered, so that its repetition is known.
    assert books() == before | {"calls": 2}


def test_a_separate_refund_is_taken_and_flagged(door: Door) -> None:
    first = door.propose()
    ended(Operation.objects.get(), states.REJECTED)
    separate = door.propose(separate_from=first.body["operation_id"])
    assert separate.status == 201
    assert separate.body["possible_repeat"] is True
    assert separate.body["operation_id"] != first.body["operation_id"]


def test_what_was_withdrawn_may_be_asked_for_again(door: Door) -> None:
    door.propose()
    ended(Operation.objects.get(), states.WITHDRAWN)
    again = door.propose()
    assert (again.status, again.body["outcome"]) == (201, "awaiting_approval")


def test_policy_refuses_with_reasons_and_the_operation_is_kept(door: Door) -> None:
    answer = door.propose(amount_minor=20100)
    assert (answer.status, answer.body["outcome"]) == (201, "denied")
    codes = [reason["code"] for reason in answer.body["reasons"]]
    assert codes == list(
        PolicyCheck.objects.filter(passed=False).order_by("position").values_list("name", flat=True)
    )
    assert "within_balance" in codes
    assert answer.body["sentence"].startswith("Policy refused it: ")
    assert answer.body["ask_again_after_seconds"] is None


@pytest.mark.parametrize(
    ("order", "changes", "failed", "next_action"),
    [
        ({}, {"amount_minor": 13000}, {"within_balance"}, "correct_and_propose"),
        ({}, {"currency": "EUR"}, {"currency_matches"}, "correct_and_propose"),
        ({"captured_minor": 90_000}, {"amount_minor": 20100}, {"agent_limits"}, "tell_a_person"),
        ({}, {"amount_minor": 20100}, {"within_balance", "agent_limits"}, "tell_a_person"),
        ({"state": "disputed"}, {}, {"payment_refundable"}, "tell_a_person"),
    ],
)
def test_only_a_wish_that_was_wrong_itself_is_to_be_corrected(
    cast: Cast, order: dict[str, Any], changes: dict[str, Any], failed: set[str], next_action: str
) -> None:
    build.order("4830", **order)
    body = Door(cast.echo).propose("4830", **changes).body
    assert {reason["code"] for reason in body["reasons"]} == failed
    assert (body["next_action"], body["do_not_repeat"]) == (next_action, True)


def test_a_limit_is_told_in_the_money_of_people(door: Door) -> None:
    build.order("4830", captured_minor=90_000)
    [reason] = door.propose("4830", amount_minor=20100).body["reasons"]
    assert reason["says"] == "above 200.00 USD for one refund"


@pytest.mark.parametrize(
    ("code", "next_action"),
    [("amount_wrong", "correct_and_propose"), ("other", "tell_a_person")],
)
def test_a_no_that_names_what_is_wrong_may_be_answered_with_a_corrected_wish(
    door: Door, cast: Cast, code: str, next_action: str
) -> None:
    call = wish()
    door.send("POST", "/refunds", call)
    approvals.reject(
        Operation.objects.get().pk,
        cast.ben,
        reason="Only the shipping; please propose that amount.",
        code=code,
        version=2,
    )
    body = door.send("POST", "/refunds", call).body
    assert (body["outcome"], body["reasons"][0]["code"]) == ("rejected", code)
    assert (body["next_action"], body["do_not_repeat"]) == (next_action, True)


def test_claims_of_the_caller_decide_nothing(door: Door) -> None:
    answer = door.propose(amount_minor=13000, claims={"order_total_minor": 99999})
    assert answer.body["outcome"] == "denied"
    assert Operation.objects.get().claims == {"order_total_minor": 99999}


@pytest.mark.parametrize(
    ("currency", "text", "minor"),
    [("EUR", "19.99", 1999), ("JPY", "1999", 1999), ("KWD", "1.999", 1999), ("USD", "0.10", 10)],
)
def test_b055_decimal_text_becomes_exact_minor_units(
    door: Door, currency: str, text: str, minor: int
) -> None:
    build.order("77", currency=currency)
    answer = door.propose("77", amount_minor=..., amount=text, currency=currency)
    assert answer.body["amount_minor"] == minor
    assert Operation.objects.get().amount_minor == minor


def test_b139_apostrophes_and_accents_pass_as_they_are(door: Door) -> None:
    ref = "Zoe\u0301 O\u2019Brien \u00d8"
    answer = door.propose(
        requested_by={"kind": "customer", "ref": ref}, reason_text="d\u00e9chir\u00e9 \u2014 'oui'"
    )
    assert answer.status == 201
    stored = Operation.objects.get()
    assert stored.requested_by_ref == ref
    assert stored.reason_text == "d\u00e9chir\u00e9 \u2014 'oui'"


def test_the_longest_order_numbers_are_no_card_numbers(door: Door) -> None:
    build.order("113-8625451-3000019", payment_ref="pi_long")
    assert door.propose("113-8625451-3000019").status == 201


def test_a_proposal_is_one_write_transaction(door: Door) -> None:
    door.get("/refunds")  # notes the use of the key, once a minute
    with CaptureQueriesContext(connection) as queries:
        door.propose()
    writes = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert len(queries) <= 26
    assert sum("savepoint" in q["sql"].lower() for q in queries) == 2, "one block, entered once"
    assert all("credential" not in sql for sql in writes)


def test_limits_of_the_agent_hold_over_calls(door: Door) -> None:
    build.order("900", captured_minor=900_000)
    outcomes = [door.propose("900", amount_minor=1000 + n).body["outcome"] for n in range(6)]
    assert outcomes == ["awaiting_approval"] * 5 + ["denied"]


def test_two_payments_need_to_be_told_apart(door: Door) -> None:
    build.order("4821", payment_ref="pi_second", captured_minor=500)
    before = books()
    answer = door.propose(amount_minor=100)
    assert (answer.status, answer.code) == (422, "payment_ambiguous")
    assert books() == before
    assert door.propose(amount_minor=100, payment_ref="pi_second").status == 201


def test_the_time_of_an_answer_is_now(door: Door) -> None:
    answer = door.propose()
    as_of = datetime.fromisoformat(answer.body["as_of"])
    assert abs(timezone.now() - as_of) < timedelta(seconds=60)
