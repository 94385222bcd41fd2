"""Bad input at the agents' door: one named error each, and nothing changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from refunds import policies
from refunds.models import Operation
from tests import build
from tests.cast import Cast
from tests.flows.door import Answer, Door, nothing_changes, wish

pytestmark = pytest.mark.django_db

NO_AMOUNT = {"amount_minor": ...}


@pytest.fixture
def door(cast: Cast) -> Door:
    build.order()
    return Door(cast.echo)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"amount_minor": 0}, "amount_zero", "amount_minor"),
        ({"amount_minor": -5}, "amount_negative", "amount_minor"),
        ({"amount_minor": None}, "field_missing", "amount_minor"),
        (NO_AMOUNT, "field_missing", "amount_minor"),
        (NO_AMOUNT | {"amount": ""}, "amount_format", "amount"),
        (NO_AMOUNT | {"amount": "0"}, "amount_zero", "amount"),
        (NO_AMOUNT | {"amount": "0.00"}, "amount_zero", "amount"),
        (NO_AMOUNT | {"amount": "-5"}, "amount_negative", "amount"),
        (NO_AMOUNT | {"amount": None}, "field_missing", "amount_minor"),
    ],
)
def test_b061_no_amount_is_ever_read_as_all_of_it(
    door: Door, changes: dict[str, Any], code: str, field: str
) -> None:
    with nothing_changes():
        answer = door.propose(**changes)
    assert (answer.status, answer.code, answer.body["field"]) == (422, code, field)
    assert answer.body["next_action"] == "correct_and_repeat"


@pytest.mark.parametrize(
    "text",
    [
        "10,50",
        "1.050,00",
        "1,050.00",
        "1 050.00",
        "\u0661\u0660",
        "1e2",
        "+5",
        "5.",
        ".5",
        "079.00",
        "$5",
        "NaN",
        "0x10",
    ],
)
def test_b065_one_form_of_amounts_is_read_and_no_other(door: Door, text: str) -> None:
    with nothing_changes():
        answer = door.propose(amount_minor=..., amount=text)
    assert (answer.status, answer.code) == (422, "amount_format")
    assert '"79.00"' in answer.body["what_to_do"]
    assert door.propose(amount_minor=..., amount="10.50").body["amount_minor"] == 1050


@pytest.mark.parametrize("number", ["79.0", "79.00", "1e2", "7900.5", "1E+2", "-0.0"])
def test_b055_a_json_number_with_a_fraction_is_refused(door: Door, number: str) -> None:
    with nothing_changes():
        text = json.dumps(wish()).replace('"amount_minor": 7900', f'"amount_minor": {number}')
        answer = door.call("POST", "/refunds", text)
    assert (answer.status, answer.code) == (422, "amount_fraction")
    assert answer.body["field"] == "amount_minor"


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ('"amount": 79.00', "amount_format", "amount"),
        ('"amount": 79', "amount_format", "amount"),
        ('"amount": true', "amount_format", "amount"),
        ('"amount_minor": true', "amount_format", "amount_minor"),
        ('"amount_minor": "7900"', "amount_format", "amount_minor"),
        ('"amount_minor": [7900]', "amount_format", "amount_minor"),
        ('"amount_minor": 1000000000000', "amount_too_large", "amount_minor"),
        ('"amount_minor": 1' + "0" * 5000, "amount_too_large", "amount_minor"),
        ('"amount": "1000000000000.00"', "amount_too_large", "amount"),
        ('"amount": "79.001"', "amount_fraction", "amount"),
        ('"amount": "79.00", "amount_minor": 7900', "amount_twice", "amount"),
        ('"amount_minor": 1, "wait_seconds": 1.0', "field_format", "wait_seconds"),
        ('"amount_minor": 1, "wait_seconds": 26', "field_format", "wait_seconds"),
        ('"amount_minor": 1, "wait_seconds": "8"', "field_format", "wait_seconds"),
        ('"amount_minor": 1, "claims": {"rate": 0.5}', "field_format", "claims.rate"),
        ('"amount_minor": 1, "claims": {"paid_minor": 0.5}', "amount_fraction", "claims.paid_minor"),
        ('"amount_minor": 1, "claims": {"a": ["x\\u0000"]}', "text_control", "claims.a.0"),
        ('"amount_minor": 1, "claims": []', "field_format", "claims"),
        ('"amount_minor": 1, "provider_key": "mine"', "field_unknown", "provider_key"),
        ('"amount_minor": 1, "separate_refund_confirmed": true', "field_unknown", "separate_refund_confirmed"),
        ('"amount_minor": 1, "approved": true', "field_unknown", "approved"),
        ('"amount_minor": 1, "separate_from": "no-id"', "field_format", "separate_from"),
        ('"amount_minor": 1, "separate_from": "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"', "separate_from_unknown", "separate_from"),
        ('"amount_minor": 1, "payment_ref": "pi_other"', "payment_unknown", "payment_ref"),
        ('"amount_minor": 1, "payment_ref": ""', "field_format", "payment_ref"),
        ('"amount_minor": 1, "request_ref": "request-1"', "request_ref_reserved", "request_ref"),
        ('"amount_minor": 1, "request_ref": " "', "request_ref_reserved", "request_ref"),
        ('"amount_minor": 1, "ticket_ref": "4111 1111 1111 1111"', "text_card_number", "ticket_ref"),
        ('"amount_minor": 1, "claims": {"note": "4242424242424242"}', "text_card_number", "claims.note"),
        ('"amount_minor": 1, "read_links": ["http://shop.example"]', "field_format", "read_links.0"),
        ('"amount_minor": 1, "read_links": "https://shop.example"', "field_format", "read_links"),
    ],
)  # fmt: skip
def test_each_wrong_field_has_its_own_code(door: Door, sent: str, code: str, field: str) -> None:
    rest = json.dumps(wish(amount_minor=..., wait_seconds=...))
    with nothing_changes():
        answer = door.call("POST", "/refunds", "{" + sent + ", " + rest[1:])
    assert (answer.status, answer.code, answer.body["field"]) == (422, code, field)
    assert answer.body["operation_id"] is None


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"currency": "usd"}, "currency_unknown", "currency"),
        ({"currency": "XXX"}, "currency_unknown", "currency"),
        ({"currency": "DOLLARS"}, "currency_unknown", "currency"),
        ({"currency": 840}, "field_format", "currency"),
        ({"currency": ...}, "field_missing", "currency"),
        ({"order_ref": "nowhere"}, "order_unknown", "order_ref"),
        ({"order_ref": ""}, "field_format", "order_ref"),
        ({"order_ref": "x" * 129}, "text_too_long", "order_ref"),
        ({"order_ref": ...}, "field_missing", "order_ref"),
        ({"reason_code": "fraudulent"}, "reason_code_unknown", "reason_code"),
        ({"reason_text": "x" * 501}, "text_too_long", "reason_text"),
        ({"reason_text": "card 4111 1111 1111 1111"}, "text_card_number", "reason_text"),
        ({"reason_text": "bell \x07"}, "text_control", "reason_text"),
        ({"session_id": "a b"}, "field_format", "session_id"),
        ({"session_id": ...}, "field_missing", "session_id"),
        ({"tool_call_id": "x" * 129}, "field_format", "tool_call_id"),
        ({"tool_call_id": "call_1\n"}, "field_format", "tool_call_id"),
        ({"requested_by": ...}, "field_missing", "requested_by"),
        ({"requested_by": {"kind": "agent", "ref": "x"}}, "field_format", "requested_by.kind"),
        ({"requested_by": {"kind": "person"}}, "field_missing", "requested_by.ref"),
        (
            {"requested_by": {"kind": "person", "ref": "ada", "approves": True}},
            "field_unknown",
            "requested_by.approves",
        ),
    ],
)
def test_each_wrong_value_has_its_own_code(
    door: Door, changes: dict[str, Any], code: str, field: str
) -> None:
    with nothing_changes():
        answer = door.propose(**changes)
    assert (answer.status, answer.code, answer.body["field"]) == (422, code, field)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "null",
        "[]",
        '"refund"',
        "{'a': 1}",
        "{} {}",
        b"\xff\xfe{}",
        b'{"session_id": "\xc3("}',
        '{"amount_minor": NaN}',
        '{"amount_minor": Infinity}',
        '{"amount_minor": 1, "amount_minor": 2}',
        '{"claims": {"a": 1, "a": 1}}',
        '{"reason_text": "\\ud800"}',
    ],
)
def test_what_is_no_clean_json_is_malformed(door: Door, text: str | bytes) -> None:
    with nothing_changes():
        answer = door.call("POST", "/refunds", text)
    assert (answer.status, answer.code) == (400, "malformed_json")


def test_json_nested_too_deep_is_refused_quickly(door: Door) -> None:
    def nested(depth: int) -> Answer:
        inner = "[" * depth + "]" * depth
        rest = json.dumps(wish(amount_minor=100 + depth))
        return door.call("POST", "/refunds", f'{{"claims": {{"a": {inner}}}, {rest[1:]}')

    with nothing_changes():
        for depth in (19, 500, 30_000):
            answer = nested(depth)
            assert (answer.status, answer.code) == (400, "too_deep")
    assert nested(18).status == 201


def test_a_body_above_64_kib_is_refused(door: Door) -> None:
    with nothing_changes():
        large = door.propose(claims={"a": "x" * 65_536})
        huge = door.call("POST", "/refunds", b" " * 2_600_000)
    assert (large.status, large.code) == (413, "body_too_large")
    assert (huge.status, huge.code) == (413, "body_too_large")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml"],
)
def test_only_json_is_read(door: Door, content_type: str) -> None:
    with nothing_changes():
        answer = door.call("POST", "/refunds", json.dumps(wish()), content_type=content_type)
    assert (answer.status, answer.code) == (415, "not_json")


@pytest.mark.parametrize(
    "path", ["/", "", "/refund", "/refunds/", "/refunds/17/approve", "/refunds/1/2/3", "/../x"]
)
def test_other_addresses_are_not_found(door: Door, path: str) -> None:
    answer = door.get(path)
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    "spelt", ["17", "xyz", "0190a5c2", "%00", "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6", "{}" * 16]
)
def test_a_badly_formed_operation_id_is_a_wrong_field(door: Door, spelt: str) -> None:
    for answer in (
        door.get(f"/refunds/{spelt}"),
        door.send("POST", f"/refunds/{spelt}/withdraw", {}),
    ):
        assert (answer.status, answer.code) == (422, "field_format")
        assert answer.body["field"] == "operation_id"
        assert answer.body["what_to_do"].startswith("Send an operation_id of an earlier answer")


def test_every_spelling_of_an_operation_id_is_the_same_refund(door: Door) -> None:
    known = door.propose().body["operation_id"]
    for spelt in (known, known.upper(), known.replace("-", "")):
        assert door.get(f"/refunds/{spelt}").body["operation_id"] == known
        flagged = door.propose(amount_minor=100, separate_from=spelt, request_ref="return-2")
        assert flagged.body["possible_repeat"] is True


@pytest.mark.parametrize(
    ("changes", "detail", "what_to_do"),
    [
        (
            {"wait_seconds": 99},
            "wait_seconds is not a whole number from 0 to 25.",
            "Send a whole number from 0 to 25.",
        ),
        (
            {"requested_by": "cus_204"},
            'requested_by is not {"kind": "customer", "ref": "cus_204"}.',
            'Send {"kind": "customer", "ref": "cus_204"}.',
        ),
        (
            {"requested_by": {"kind": "robot", "ref": "x"}},
            "requested_by.kind is not one of: person, customer, system.",
            "Send one of: person, customer, system.",
        ),
        (
            {"requested_by": {"kind": "person", "ref": "ada", "approves": True}},
            "requested_by.approves: there is no such field here.",
            "Leave it out. The fields are: kind, ref.",
        ),
        (
            {"session_id": "a b"},
            "session_id is not 1 to 128 of A-Z a-z 0-9 _ . : -.",
            "Send 1 to 128 of A-Z a-z 0-9 _ . : -.",
        ),
        ({"order_ref": ...}, "order_ref is missing.", "Send text of 1 to 128 characters."),
        ({"claims": []}, "claims is not an object of names and values.", "Send an object of"),
        ({"read_links": ["x"]}, "read_links.0 is not an https address", "Send an https address"),
        ({"payment_ref": 7}, "payment_ref is not text of 1 to 128 characters.", "Send text of 1"),
        (
            {"amount_minor": "7900"},
            'amount_minor is not `amount` as text ("79.00"), or `amount_minor` as a whole number',
            'Send `amount` as text ("79.00"), or `amount_minor` as a whole number (7900).',
        ),
    ],
)
def test_a_wrong_field_is_told_its_allowed_form_in_our_own_words(
    door: Door, changes: dict[str, Any], detail: str, what_to_do: str
) -> None:
    body = door.propose(**changes).body
    assert body["detail"].startswith(detail)
    assert body["what_to_do"].startswith(what_to_do)
    for word in ("valid dictionary", "Input", "permitted", "RequestedBy", "/api/docs"):
        assert word not in body["detail"] + body["what_to_do"]


def test_an_unknown_order_is_checked_with_the_customer_and_fed_by_nobody_here(door: Door) -> None:
    body = door.propose("nowhere").body
    assert "that this caller may see" in body["detail"]
    assert body["what_to_do"].startswith("Check the number with the customer.")
    assert "PUT" not in body["what_to_do"]


def test_other_methods_are_refused_with_those_that_exist(door: Door) -> None:
    operation = door.propose().body["operation_id"]
    with nothing_changes():
        for method, path, allowed in (
            ("DELETE", "/refunds", {"GET", "POST"}),
            ("PATCH", f"/refunds/{operation}", {"GET"}),
            ("POST", f"/refunds/{operation}", {"GET"}),
            ("DELETE", "/orders/4821", {"PUT"}),
            ("GET", "/orders:batch", {"POST"}),
        ):
            answer = door.call(method, path)
            assert (answer.status, answer.code) == (405, "method_not_allowed")
            assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("act", ["approve", "reject", "resolve", "send", "revoke"])
def test_no_address_lets_an_agent_decide(door: Door, act: str) -> None:
    operation = door.propose().body["operation_id"]
    with nothing_changes():
        answer = door.send("POST", f"/refunds/{operation}/{act}", {})
    assert (answer.status, answer.code) == (404, "not_found")


def test_misspelt_parameters_are_not_ignored(door: Door) -> None:
    operation = door.propose().body["operation_id"]
    for path in (f"/refunds/{operation}?wait=5", "/refunds?size=5", "/orders/4821/refunds?x=1"):
        answer = door.get(path)
        assert (answer.status, answer.code) == (422, "field_unknown")
    for path in (
        f"/refunds/{operation}?wait_seconds=26",
        f"/refunds/{operation}?wait_seconds=-1",
        f"/refunds/{operation}?wait_seconds=1e1",
        "/refunds?limit=0",
        "/refunds?limit=101",
        "/refunds?after=17",
    ):
        answer = door.get(path)
        assert (answer.status, answer.code) == (422, "field_format")


def test_hostile_text_is_refused_in_no_time(door: Door) -> None:
    with nothing_changes():
        for text in ("4 " * 30_000, "1-" * 30_000, "a" * 60_000, "\ufdfa" * 5_000):
            answer = door.propose(reason_text=text)
            assert answer.code == "text_too_long"


def test_an_unforeseen_failure_has_the_same_shape(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy file is gone: an operator's fault that no caller can cause."""
    monkeypatch.setattr(settings, "POLICY_FILE", Path("/nowhere/policy.toml"))
    policies.current.cache_clear()
    try:
        with nothing_changes():
            answer = door.propose()
    finally:
        policies.current.cache_clear()
    assert (answer.status, answer.code) == (500, "internal_error")
    assert answer.body["next_action"] == "repeat_later"
    assert "nowhere" not in json.dumps(answer.body)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_said_so_and_nothing_is_recorded(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = wish()
    with nothing_changes():
        connection.close()
        with monkeypatch.context() as away:
            away.setitem(connection.settings_dict, "PORT", "1")
            away.setitem(connection.settings_dict, "HOST", "127.0.0.1")
            answers = [door.send("POST", "/refunds", call), door.get("/refunds")]
        connection.close()
    for answer in answers:
        assert (answer.status, answer.code) == (503, "database_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert door.send("POST", "/refunds", call).status == 201
    assert Operation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_wish_that_was_recorded_is_not_called_lost(door: Door) -> None:
    """Another session locks a table that only the reading of the result needs."""
    call = wish()
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as other:
        other.execute("LOCK TABLE approval IN ACCESS EXCLUSIVE MODE")
        answer = door.send("POST", "/refunds", call)
        other.rollback()
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert answer.body["operation_id"] == str(Operation.objects.get().pk)
    assert answer.body["next_action"] == "ask_status"
    assert "recorded" in answer.body["detail"]
    again = door.send("POST", "/refunds", call)
    assert (again.status, again.body["operation_id"]) == (200, answer.body["operation_id"])


def test_a_post_to_an_address_that_is_none_is_a_problem_and_no_page() -> None:
    client = Client(enforce_csrf_checks=True)

    answer = client.post("/api/v1/refunds/1/approve", "{}", content_type="application/json")

    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
