"""Bodies that no generator makes, by hand: each has its code, its documented answer, no effect."""

from __future__ import annotations

import json
from typing import Any

from tests.api_schema.conftest import NDJSON, Visit
from tests.flows.door import books, wish

WISH = json.dumps(wish("4821"))


def _with(fields: dict[str, Any]) -> str:
    return json.dumps(wish(**({"order_ref": "4821"} | fields)))


# (name, body, status, code); all of them are also sent to the other addresses.
ODD: list[tuple[str, bytes, int, str]] = [
    ("nothing", b"", 400, "malformed_json"),
    ("no JSON", b"{", 400, "malformed_json"),
    ("a list", b"[]", 400, "malformed_json"),
    ("null", b"null", 400, "malformed_json"),
    ("a text", b'"x"', 400, "malformed_json"),
    ("a number", b"7", 400, "malformed_json"),
    ("not UTF-8", b'{"session_id": "\xff"}', 400, "malformed_json"),
    ("a byte order mark", b"\xef\xbb\xbf" + WISH.encode(), 400, "malformed_json"),
    ("UTF-16", WISH.encode("utf-16"), 400, "malformed_json"),
    ("NaN", b'{"amount_minor": NaN}', 400, "malformed_json"),
    ("Infinity", b'{"amount_minor": -Infinity}', 400, "malformed_json"),
    ("half a pair", rb'{"reason_text": "\ud800"}', 400, "malformed_json"),
    ("half a pair as a name", rb'{"\udfff": 1}', 400, "malformed_json"),
    ("a name twice", b'{"currency": "USD", "currency": "EUR"}', 400, "malformed_json"),
    ("a name twice, deep", b'{"claims": {"a": 1, "a": 2}}', 400, "malformed_json"),
    ("deep", b'{"claims": ' + b'{"a":' * 25 + b"1" + b"}" * 26, 400, "too_deep"),
    ("very deep", b"[" * 30_000, 400, "too_deep"),
    ("NUL", rb'{"reason_text": "a\u0000b"}', 422, "text_control"),
    ("NUL as a name", rb'{"a\u0000": 1}', 422, "text_control"),
    ("huge integer", b'{"amount_minor": ' + b"9" * 5_000 + b"}", 422, "amount_too_large"),
    ("huge exponent", b'{"amount_minor": 1e400}', 422, "amount_fraction"),
    ("a fraction", b'{"amount_minor": 79.0}', 422, "amount_fraction"),
    (
        "an unknown field",
        WISH[:-1].encode() + b', "idempotency_key": "mine"}',
        422,
        "field_unknown",
    ),
    ("too large", b'{"reason_text": "' + b"x" * 70_000 + b'"}', 413, "body_too_large"),
]


def test_an_odd_body_is_refused_by_name_everywhere(visit: Visit) -> None:
    before = books()
    withdraw = f"/refunds/{visit.refunds[0]}/withdraw"
    for name, body, status, code in ODD:
        told = refused(visit, "propose_refund", ("POST", "/refunds", "refund:propose"), body)
        assert told == (status, code), name
        told = refused(visit, "put_order", ("PUT", "/orders/4821", "order:write"), body)
        assert told == (status, code) or 422 in (status, told[0]), name
        if name not in ("nothing", "null"):  # a withdrawal needs no body
            told = refused(visit, "withdraw_refund", ("POST", withdraw, "refund:propose"), body)
            assert told == (status, code) or status == told[0] == 422, name
    assert books() == before


def refused(visit: Visit, address: str, call: tuple[str, str, str], body: bytes) -> tuple[int, str]:
    """Status and code of a refusal, which is as documented."""
    answer = visit.send(*call, body)
    visit.schema.find_operation_by_id(address).validate_response(answer)
    return answer.status_code, answer.json()["code"]


FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"amount_minor": 79.5}, "amount_fraction"),
    ({"amount_minor": "7900"}, "amount_format"),
    ({"amount_minor": True}, "amount_format"),
    ({"amount_minor": 10**12}, "amount_too_large"),
    ({"amount_minor": ..., "amount": 79}, "amount_format"),
    ({"amount_minor": ..., "amount": "79,00"}, "amount_format"),
    ({"amount_minor": ..., "amount": "79.000"}, "amount_fraction"),
    ({"amount_minor": ..., "amount": "\u0667\u0669"}, "amount_format"),
    ({"amount": "79.00"}, "amount_twice"),
    ({"amount_minor": 0}, "amount_zero"),
    ({"amount_minor": -1}, "amount_negative"),
    ({"currency": "US\u0000"}, "text_control"),
    ({"currency": "XXX"}, "currency_unknown"),
    ({"order_ref": "nowhere"}, "order_unknown"),
    ({"payment_ref": "pi_4822"}, "payment_unknown"),
    ({"reason_code": "because"}, "reason_code_unknown"),
    ({"reason_text": "x" * 501}, "text_too_long"),
    ({"reason_text": "4111 1111 1111 1111"}, "text_card_number"),
    ({"session_id": ...}, "field_missing"),
    ({"session_id": "a b"}, "field_format"),
    ({"separate_from": "x" * 36}, "field_format"),
    ({"wait_seconds": 26}, "field_format"),
    ({"claims": {str(number): 1 for number in range(51)}}, "field_format"),
]


def test_an_odd_field_is_refused_by_name(visit: Visit) -> None:
    before = books()
    call = ("POST", "/refunds", "refund:propose")
    for fields, code in FIELDS:
        told = refused(visit, "propose_refund", call, _with(fields).encode())
        assert told == (422, code), fields
    assert books() == before


def test_another_content_type_is_not_json(visit: Visit) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json5", "x", ""):
        answer = visit.send("POST", "/refunds", "refund:propose", WISH, Content_Type=kind)
        visit.schema.find_operation_by_id("propose_refund").validate_response(answer)
        assert (answer.status_code, answer.json()["code"]) == (415, "not_json"), kind


def test_a_batch_answers_every_line_by_itself(visit: Visit) -> None:
    lines = [
        b'{"order_ref": "4821", "currency": "USD"}',
        b"{",
        b'{"order_ref": "4821"}',
        b'{"order_ref": "new-1", "currency": "USD"}',
        rb'{"order_ref": "\ud800", "currency": "USD"}',
        b'{"order_ref": "' + b"x" * 70_000 + b'", "currency": "USD"}',
        b"[" * 3_000,
    ]
    answer = visit.send(
        "POST", "/orders:batch", "order:write", b"\n".join(lines), Content_Type=NDJSON
    )
    visit.schema.find_operation_by_id("feed_orders").validate_response(answer)
    told = [json.loads(line) for line in answer.content.splitlines()]
    assert [line["line"] for line in told] == list(range(1, 8))
    assert [line["status"] for line in told] == [200, 400, 422, 201, 400, 413, 400]


def test_another_method_is_refused_and_the_right_ones_are_named(visit: Visit) -> None:
    for method, path, allowed in (
        ("DELETE", "/refunds", {"GET", "POST"}),
        ("PUT", "/refunds", {"GET", "POST"}),
        ("TRACE", "/refunds", {"GET", "POST"}),
        ("PATCH", "/orders/4821", {"PUT"}),
        ("GET", "/orders:batch", {"POST"}),
    ):
        answer = visit.send(method, path, "refund:read")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert set(answer.headers["Allow"].split(", ")) == allowed
