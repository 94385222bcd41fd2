"""How the plain dialect is written and read: an allow-list, and everything else proves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer
from refunds.providers.base import Account, Wish
from refunds.providers.plain import REFUSALS, TURNED_AWAY, Plain
from refunds.providers.plain_contracts import CONTRACTS

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
EXPECTED = Expected(marker=MARKER, payment_ref="pi_4821", amount_minor=7900, currency="USD")
RECORD: dict[str, Any] = {
    "id": "rf_0010",
    "payment": "pi_4821",
    "amount_minor": 7900,
    "currency": "USD",
    "aftersend_operation": MARKER,
    "status": "succeeded",
    "created_at": "2026-11-29T12:00:00Z",
}
ADAPTER = Plain()


def account(name: str = "plain-main") -> Account:
    return Account(
        name=name,
        adapter="plain",
        base_url=f"http://127.0.0.1:8010/plain/{name}",
        contract=CONTRACTS[name],
        credential="sandbox-key",
    )


def raw(status: int, body: object, **more: Any) -> RawAnswer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    values: dict[str, Any] = {
        "status": status,
        "headers": {"content-type": "application/json"},
        "body": content,
        "connected_at": NOON,
        "first_byte_at": NOON,
        "closed_at": NOON,
    }
    return RawAnswer(**(values | more))


def read(status: int, body: object, **more: Any) -> Answer:
    return ADAPTER.read_answer(raw(status, body, **more), EXPECTED)


def error(code: object, message: str = "no") -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def test_the_body_has_one_form_with_our_marker_and_no_text_of_the_caller() -> None:
    wish = Wish(
        marker=MARKER,
        payment_ref="pi_4821",
        amount_minor=7900,
        currency="USD",
        reason_code="damaged_item",
    )
    assert ADAPTER.body(wish) == (
        b'{"aftersend_operation":"0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a","amount_minor":7900,'
        b'"currency":"USD","payment":"pi_4821","reason_code":"customer_request"}'
    )
    assert b'"reason_code":"duplicate"' in ADAPTER.body(
        replace(wish, reason_code="duplicate_payment")
    )


def test_the_request_carries_the_stored_bytes_and_the_key() -> None:
    request = ADAPTER.create_refund(account(), b"these very bytes", "the-key")
    assert (request.method, request.body) == ("POST", b"these very bytes")
    assert request.url == "http://127.0.0.1:8010/plain/plain-main/refunds"
    assert request.headers["Idempotency-Key"] == "the-key"
    assert "Idempotency-Key" not in ADAPTER.create_refund(account("plain-nokeys"), b"", "k").headers


@pytest.mark.parametrize(
    ("status", "outcome"), [("succeeded", Outcome.CONFIRMED), ("pending", Outcome.ACCEPTED)]
)
def test_a_complete_record_of_ours_is_success(status: str, outcome: Outcome) -> None:
    answer = read(201, RECORD | {"status": status})
    assert answer.outcome is outcome
    assert answer.record is not None
    assert answer.record.ref == "rf_0010"
    assert answer.record.created_at == NOON


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"amount_minor": 7901}, "amount"),
        ({"amount_minor": 7900.0}, "amount"),
        ({"amount_minor": "7900"}, "amount"),
        ({"amount_minor": True}, "amount"),
        ({"amount_minor": None}, "amount"),
        ({"currency": "EUR"}, "currency"),
        ({"currency": "usd"}, "currency"),
        ({"payment": "pi_4822"}, "payment"),
        ({"aftersend_operation": "another"}, "marker"),
        ({"aftersend_operation": None}, "marker"),
        ({"status": "failed"}, "failed"),
        ({"status": "canceled"}, "canceled"),
        ({"status": "Succeeded"}, "Succeeded"),
        ({"status": "reversed"}, "reversed"),
    ],
)
def test_a_record_that_is_not_what_we_asked_for_proves_nothing(
    changes: dict[str, Any], named: str
) -> None:
    answer = read(201, RECORD | changes)
    assert answer.outcome is Outcome.UNANSWERED
    assert named in answer.because
    # What was shown is kept: it is a trace that a lookup can follow.
    assert answer.record is not None


@pytest.mark.parametrize("name", ["id", "payment", "status"])
@pytest.mark.parametrize("value", [None, "", 7, ["rf"], {}])
def test_a_record_without_its_name_is_none(name: str, value: object) -> None:
    answer = read(201, RECORD | {name: value})
    assert (answer.outcome, answer.record) == (Outcome.UNANSWERED, None)


@pytest.mark.parametrize("status", [100, 200, 202, 204, 206, 300, 302, 307, 400, 409, 500, 503])
def test_only_the_expected_status_is_success(status: int) -> None:
    assert read(status, RECORD).outcome is Outcome.UNANSWERED


GOOD = json.dumps(RECORD).encode()


def nested(depth: int) -> bytes:
    """The good record, its object being the first of `depth` levels."""
    return GOOD[:-1] + b', "more": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


UNREADABLE = {
    "empty": b"",
    "html": b"<!doctype html><html><body>201 Created</body></html>",
    "truncated": GOOD[:-1],
    "trailing": GOOD + b"{}",
    "list": b"[" + GOOD + b"]",
    "null": b"null",
    "a number": b"201",
    "not utf-8": GOOD.replace(b"rf_0010", b"rf_\xff"),
    "name twice": GOOD[:-1] + b', "amount_minor": 7900}',
    "status twice": b'{"status": "failed", ' + GOOD[1:],
    "name twice inside": GOOD[:-1] + b', "more": {"a": 1, "a": 2}}',
    "NaN": GOOD[:-1] + b', "more": NaN}',
    "Infinity": GOOD[:-1] + b', "more": [-Infinity]}',
    "too deep": nested(21),
    "far too deep": nested(100_000),
    "endless digits": GOOD[:-1] + b', "more": ' + b"9" * 5000 + b"}",
    "half a character": GOOD.replace(b"rf_0010", b"rf_\\ud800"),
    "a zero character": GOOD.replace(b"rf_0010", b"rf_\\u0000"),
    "a zero character in a name": GOOD[:-1] + b', "a\\u0000": 1}',
}


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_two_parsers_could_read_differently_proves_nothing(name: str) -> None:
    answer = read(201, UNREADABLE[name])
    assert (answer.outcome, answer.record) == (Outcome.UNANSWERED, None)
    assert answer.because.startswith("HTTP 201, and ")


def test_sane_depth_is_readable() -> None:
    assert read(201, nested(20)).outcome is Outcome.CONFIRMED


@pytest.mark.parametrize("given", ["text/html", "text/plain", "", "application/jsonp"])
def test_a_body_that_does_not_call_itself_json_is_not_read(given: str) -> None:
    headers = {"content-type": given} if given else {}
    assert read(201, RECORD, headers=headers).outcome is Outcome.UNANSWERED


def test_json_may_name_its_charset() -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert read(201, RECORD, headers=headers).outcome is Outcome.CONFIRMED


def test_a_body_that_the_wire_marked_unreadable_is_not_read() -> None:
    answer = read(201, RECORD, unreadable="the body is longer than 262144 bytes")
    assert answer.outcome is Outcome.UNANSWERED
    assert "longer than" in answer.because


@pytest.mark.parametrize("code", sorted(REFUSALS))
@pytest.mark.parametrize("status", [400, 409, 422])
def test_a_listed_code_is_a_refusal(status: int, code: str) -> None:
    answer = read(status, error(code))
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, code)


@pytest.mark.parametrize("code", sorted(REFUSALS))
@pytest.mark.parametrize("status", [200, 201, 303, 401, 403, 404, 425, 429, 500, 502, 503])
def test_a_listed_code_under_another_status_is_not(status: int, code: str) -> None:
    assert read(status, error(code)).outcome is Outcome.UNANSWERED


@pytest.mark.parametrize(
    "code",
    [
        *("already_refunded", "amount_exceeds_remaining", "key_in_use", "key_reused"),
        *("rate_limited", "duplicate_request", "payment_not_found", "refund_not_found"),
        *(
            "unauthorized",
            "forbidden",
            "server_error",
            "too_early",
            "something_new",
            "AMOUNT_INVALID",
        ),
    ],
)
@pytest.mark.parametrize("status", [400, 404, 409, 410, 422, 425, 500])
def test_no_other_code_is_ever_a_refusal(status: int, code: str) -> None:
    answer = read(status, error(code))
    assert (answer.outcome, answer.code) == (Outcome.UNANSWERED, code)


@pytest.mark.parametrize(("status", "code"), sorted(TURNED_AWAY))
def test_the_providers_own_envelope_with_a_listed_code_is_turned_away(
    status: int, code: str
) -> None:
    answer = read(status, error(code))
    assert (answer.outcome, answer.code) == (Outcome.TURNED_AWAY, code)
    assert answer.credential_refused is (status in (401, 403))


@pytest.mark.parametrize(
    ("status", "body", "more"),
    [
        (429, error("duplicate_request"), {}),
        (429, error("unauthorized"), {}),
        (401, error("rate_limited"), {}),
        (403, error("unauthorized"), {}),
        (401, error("payment_not_refundable"), {}),
        (429, error(None), {}),
        (429, {"code": "rate_limited"}, {}),
        (429, {"error": "rate_limited"}, {}),
        (401, {}, {}),
        (429, b"<html>slow down</html>", {"headers": {"content-type": "text/html"}}),
        (403, b"<html>blocked</html>", {"headers": {"content-type": "text/html"}}),
        (429, b"", {"headers": {}}),
        (200, error("rate_limited"), {}),
        (503, error("rate_limited"), {}),
    ],
)
def test_every_other_401_403_and_429_proves_nothing(
    status: int, body: object, more: dict[str, Any]
) -> None:
    answer = read(status, body, **more)
    assert answer.outcome is Outcome.UNANSWERED
    assert not answer.credential_refused


def test_not_sent_is_proved_by_no_first_byte_and_by_nothing_else() -> None:
    nothing = RawAnswer(failure="the connection was not made", closed_at=NOON)
    assert ADAPTER.read_answer(nothing, EXPECTED).outcome is Outcome.NOT_SENT
    connected = replace(nothing, connected_at=NOON)
    assert ADAPTER.read_answer(connected, EXPECTED).outcome is Outcome.NOT_SENT
    begun = replace(connected, first_byte_at=NOON)
    assert ADAPTER.read_answer(begun, EXPECTED).outcome is Outcome.UNANSWERED


def test_a_page_is_readable_only_whole_and_in_order() -> None:
    page = ADAPTER.read_page(raw(200, {"items": [RECORD], "next": "c1"}), "pi_4821")
    assert (page.readable, page.next_cursor) == (True, "c1")
    assert [each.ref for each in page.records] == ["rf_0010"]
    last = ADAPTER.read_page(raw(200, {"items": [], "next": None}), "pi_4821")
    assert (last.readable, last.next_cursor, last.records) == (True, None, ())


@pytest.mark.parametrize(
    "answer",
    [
        raw(500, {"items": [], "next": None}),
        raw(404, error("payment_not_found")),
        raw(200, {"items": None, "next": None}),
        raw(200, {"items": {}, "next": None}),
        raw(200, {"next": None}),
        raw(200, {"items": [], "next": 7}),
        raw(200, {"items": [], "next": ""}),
        raw(200, {"items": ["rf_0010"], "next": None}),
        raw(200, {"items": [RECORD | {"id": None}], "next": None}),
        raw(200, b"[]"),
        RawAnswer(failure="silence", first_byte_at=NOON),
    ],
)
def test_a_page_with_anything_odd_cannot_tell(answer: RawAnswer) -> None:
    page = ADAPTER.read_page(answer, "pi_4821")
    assert not page.readable
    assert page.because
    assert page.records == ()


def test_one_refund_is_read_or_cannot_tell() -> None:
    good = ADAPTER.read_one(raw(200, RECORD), "pi_4821")
    assert good.record is not None
    for answer in (raw(404, error("refund_not_found")), raw(200, {}), RawAnswer(failure="silence")):
        reading = ADAPTER.read_one(answer, "pi_4821")
        assert reading.record is None
        assert reading.because
