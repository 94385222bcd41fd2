"""Stripe's API v1 as we write and read it, from answers in the form that Stripe documents."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from refunds.domain.errors import Refusal
from refunds.domain.outcome import Answer, Expected, Outcome, RawAnswer
from refunds.providers.base import Account, Wish
from refunds.providers.stripe import (
    API_VERSION,
    CONTRACT,
    LIVE_URL,
    REFUSALS,
    Stripe,
)
from refunds.providers.stripe_amounts import from_stripe_amount, to_stripe_amount

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
EXPECTED = Expected(marker=MARKER, payment_ref="pi_4821", amount_minor=7900, currency="USD")
RECORD: dict[str, Any] = {
    "id": "re_1",
    "object": "refund",
    "amount": 7900,
    "charge": "ch_4821",
    "created": int(NOON.timestamp()),
    "currency": "usd",
    "metadata": {"aftersend_operation": MARKER},
    "payment_intent": "pi_4821",
    "reason": "requested_by_customer",
    "status": "succeeded",
}
ADAPTER = Stripe()
ACCOUNT = Account(
    name="stripe-eu",
    adapter="stripe",
    base_url=LIVE_URL,
    contract=CONTRACT,
    credential="sk_live",
    api_version=API_VERSION,
)
WISH = Wish(
    marker=MARKER,
    payment_ref="pi_4821",
    amount_minor=7900,
    currency="USD",
    reason_code="damaged_item",
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


def error(kind: object, code: object = None) -> dict[str, Any]:
    inner = {"type": kind, "message": "no"}
    return {"error": inner if code is None else inner | {"code": code}}


def test_the_body_is_a_form_with_our_marker_and_no_text_of_the_caller() -> None:
    assert ADAPTER.body(WISH) == (
        b"payment_intent=pi_4821&amount=7900&reason=requested_by_customer"
        b"&metadata%5Baftersend_operation%5D=0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"
    )


def test_the_request_carries_the_stored_bytes_and_the_key() -> None:
    request = ADAPTER.create_refund(ACCOUNT, b"these very bytes", "the-key")
    assert (request.method, request.body) == ("POST", b"these very bytes")
    assert request.url == "https://api.stripe.com/v1/refunds"
    assert request.headers["Idempotency-Key"] == "the-key"
    assert request.headers["Authorization"] == "Basic c2tfbGl2ZTo="


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("succeeded", Outcome.CONFIRMED),
        ("pending", Outcome.ACCEPTED),
        ("requires_action", Outcome.ACCEPTED),
        ("failed", Outcome.UNANSWERED),
        ("canceled", Outcome.UNANSWERED),
        ("blocked", Outcome.UNANSWERED),
    ],
)
def test_the_status_of_a_record_of_ours(status: str, outcome: Outcome) -> None:
    answer = read(200, RECORD | {"status": status})
    assert answer.outcome is outcome
    assert answer.record is not None
    assert answer.record.provider_status == status
    assert (answer.record.currency, answer.record.created_at) == ("USD", NOON)


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": 7901},
        {"amount": 7900.0},
        {"amount": "7900"},
        {"currency": "eur"},
        {"currency": None},
        {"payment_intent": "pi_4822"},
        {"payment_intent": None, "charge": "pi_4821"},
        {"metadata": {}},
        {"metadata": None},
        {"metadata": {"aftersend_operation": "another"}},
        {"object": "charge"},
        {"id": ""},
        {"status": None},
    ],
)
def test_a_record_that_is_not_what_we_asked_for_proves_nothing(changes: dict[str, Any]) -> None:
    assert read(200, RECORD | changes).outcome is Outcome.UNANSWERED


@pytest.mark.parametrize("status", [201, 202, 302, 400, 402, 404, 409, 500])
def test_only_the_expected_status_is_success(status: int) -> None:
    assert read(status, RECORD).outcome is Outcome.UNANSWERED


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_listed_code_is_a_refusal_under_its_own_status_and_kind_only(code: str) -> None:
    answer = read(400, error("invalid_request_error", code))
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, code)
    for status in (200, 402, 404, 409, 429, 500):
        assert read(status, error("invalid_request_error", code)).outcome is Outcome.UNANSWERED
    for kind in ("api_error", "idempotency_error", "card_error"):
        assert read(400, error(kind, code)).outcome is Outcome.UNANSWERED


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "charge_already_refunded"),
        (400, "invalid_request_error", None),
        (400, "invalid_request_error", "resource_missing"),
        (400, "invalid_request_error", "amount_too_large"),
        (400, "invalid_request_error", "something_new"),
        (400, "idempotency_error", None),
        (402, "card_error", "card_declined"),
        (404, "invalid_request_error", "resource_missing"),
        (409, "invalid_request_error", "idempotency_key_in_use"),
        (409, "idempotency_error", None),
        (424, "api_error", None),
        (425, "invalid_request_error", None),
        (429, "invalid_request_error", "lock_timeout"),
        (429, "invalid_request_error", None),
        (500, "api_error", None),
        (503, "api_error", None),
        (500, "invalid_request_error", "rate_limit"),
        (401, "api_error", None),
    ],
)
def test_every_other_error_proves_nothing(status: int, kind: str, code: str | None) -> None:
    answer = read(status, error(kind, code))
    assert (answer.outcome, answer.code) == (Outcome.UNANSWERED, code or kind)
    assert not answer.credential_refused


@pytest.mark.parametrize(
    ("status", "kind", "code", "credential"),
    [
        (401, "invalid_request_error", None, True),
        (401, "authentication_error", None, True),
        (403, "invalid_request_error", None, True),
        (429, "invalid_request_error", "rate_limit", False),
    ],
)
def test_stripes_own_envelope_given_before_execution_is_turned_away(
    status: int, kind: str, code: str | None, credential: bool
) -> None:
    answer = read(status, error(kind, code))
    assert (answer.outcome, answer.credential_refused) == (Outcome.TURNED_AWAY, credential)


@pytest.mark.parametrize("status", [401, 403, 429])
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>denied by the gateway</html>", "text/html"),
        (b"{}", "application/json"),
        (b'{"error": "invalid_request_error"}', "application/json"),
        (b'{"error": {"code": "rate_limit"}}', "application/json"),
        (b'{"error": {"type": "invalid_request_error", "code": "rate_limit"}}', "text/plain"),
        (b"", ""),
    ],
)
def test_a_hop_in_front_proves_nothing(status: int, body: bytes, content_type: str) -> None:
    answer = read(status, body, headers={"content-type": content_type})
    assert answer.outcome is Outcome.UNANSWERED
    assert not answer.credential_refused


@pytest.mark.parametrize(
    ("minor", "currency", "theirs"),
    [
        (7900, "USD", 7900),
        (1000, "JPY", 1000),
        (1230, "KWD", 1230),
        (500, "ISK", 50_000),
        (500, "UGX", 50_000),
        (500, "MGA", 5),
        (12345, "HUF", 12345),
    ],
)
def test_amounts_where_stripe_counts_otherwise_than_iso(
    minor: int, currency: str, theirs: int
) -> None:
    assert to_stripe_amount(minor, currency) == theirs
    assert from_stripe_amount(theirs, currency) == minor


@pytest.mark.parametrize(("minor", "currency"), [(1234, "KWD"), (501, "MGA")])
def test_an_amount_that_stripe_cannot_say_is_refused(minor: int, currency: str) -> None:
    with pytest.raises(Refusal) as refused:
        to_stripe_amount(minor, currency)
    assert refused.value.code == "amount_fraction"


def test_an_amount_of_theirs_that_we_cannot_say_is_none() -> None:
    assert from_stripe_amount(50_001, "ISK") is None
    assert from_stripe_amount(None, "USD") is None
    assert from_stripe_amount(7900, None) is None


def test_a_charge_is_asked_for_and_compared_as_a_charge() -> None:
    expected = Expected(marker=MARKER, payment_ref="ch_4821", amount_minor=7900, currency="USD")
    assert ADAPTER.read_answer(raw(200, RECORD), expected).outcome is Outcome.CONFIRMED
    assert "charge=ch_4821" in ADAPTER.list_refunds(ACCOUNT, "ch_4821", None).url


def test_pages_follow_the_last_record_and_must_say_whether_more_follows() -> None:
    listed = {"object": "list", "data": [RECORD], "has_more": True}
    page = ADAPTER.read_page(raw(200, listed), "pi_4821")
    assert (page.readable, page.next_cursor) == (True, "re_1")
    last = ADAPTER.read_page(raw(200, listed | {"has_more": False}), "pi_4821")
    assert (last.readable, last.next_cursor) == (True, None)
    for odd in (
        listed | {"has_more": None},
        listed | {"data": []},
        listed | {"data": {}},
        listed | {"object": "refund"},
        {"object": "list", "data": []},
    ):
        assert not ADAPTER.read_page(raw(200, odd), "pi_4821").readable
    assert not ADAPTER.read_page(raw(503, listed), "pi_4821").readable
    assert ADAPTER.list_refunds(ACCOUNT, "pi_4821", "re_1").url.endswith("starting_after=re_1")


def test_one_refund_is_read_or_cannot_tell() -> None:
    assert ADAPTER.read_one(raw(200, RECORD), "pi_4821").record is not None
    missing = ADAPTER.read_one(
        raw(404, error("invalid_request_error", "resource_missing")), "pi_4821"
    )
    assert missing.record is None
    assert "404" in missing.because


def test_every_request_asks_for_the_version_that_the_reading_is_written_for() -> None:
    since = datetime(2026, 11, 1, tzinfo=UTC)
    for request in (
        ADAPTER.create_refund(ACCOUNT, b"", "key"),
        ADAPTER.list_refunds(ACCOUNT, "pi_4821", None),
        ADAPTER.retrieve(ACCOUNT, "re_1"),
        ADAPTER.list_account(ACCOUNT, "refunds", since, None),
        ADAPTER.list_account(ACCOUNT, "disputes", since, None),
    ):
        assert request.headers["Stripe-Version"] == API_VERSION


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({}, ""),
        ({"stripe-version": API_VERSION}, ""),
        ({"stripe-version": "2019-01-01"}, "of API version 2019-01-01, and we asked for 2026-"),
    ],
)
def test_an_answer_of_another_version_cannot_tell(headers: dict[str, str], says: str) -> None:
    answer = replace(raw(200, RECORD), headers=headers)
    found = ADAPTER.speaks_for_another(answer, ACCOUNT)
    assert says in found
    assert bool(found) is bool(says)
