"""The order feed over REST: all of a snapshot or nothing, and only what the merchant may say."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from django.db import connection

from refunds.models import Order, Payment, ProviderRefund
from tests import build
from tests.cast import Cast
from tests.flows.door import Answer, Door, books

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> Door:
    return Door(cast.echo, "order:write")


def facts(**changes: Any) -> dict[str, Any]:
    """A whole order; a change to `...` leaves a field out."""
    whole: dict[str, Any] = {
        "feed_seq": 18,
        "facts_as_of": "2026-11-29T13:59:00Z",
        "currency": "USD",
        "customer_ref": "cus_204",
        "return_state": "received",
        "fulfilment_state": "delivered",
        "links": {"order": "https://localhost/orders/4821"},
        "facts": [
            {
                "label": "Warehouse",
                "value": "headphones received, unopened",
                "source": "wms",
                "at": "2026-11-28T10:00:00+01:00",
            }
        ],
        "payments": [
            {
                "ref": "pi_4821",
                "provider_account": "plain-main",
                "state": "captured",
                "captured_minor": 12900,
                "captured_at": "2026-11-20T09:00:00Z",
            }
        ],
        "external_refunds": [
            {
                "payment_ref": "pi_4821",
                "provider_refund_ref": "rf_0009",
                "amount_minor": 3000,
                "provider_status": "succeeded",
                "created_at": "2026-11-29T13:00:00Z",
            }
        ],
        "lines": [{"name": "Headphones", "quantity": 1, "amount_minor": 7900}],
    } | changes
    return {name: value for name, value in whole.items() if value is not ...}


def put(door: Door, ref: str = "4821", **changes: Any) -> Answer:
    return door.send("PUT", f"/orders/{ref}", facts(**changes))


def test_an_order_is_stored_with_its_balance(door: Door) -> None:
    answer = put(door)
    assert answer.status == 201
    assert answer.body == {
        "order_ref": "4821",
        "version": 1,
        "changed": True,
        "frozen": False,
        "payments": [
            {
                "ref": "pi_4821",
                "captured_minor": 12900,
                "refunded_minor": 3000,
                "held_minor": 0,
                "refundable_minor": 9900,
            }
        ],
    }
    order = Order.objects.get()
    assert order.facts[0]["value"] == "headphones received, unopened"
    assert order.lines == [{"name": "Headphones", "quantity": 1, "amount_minor": 7900}]
    assert ProviderRefund.objects.get().operation_id is None


def test_equal_facts_again_change_nothing(door: Door) -> None:
    put(door)
    before = books()
    again = put(door)
    assert (again.status, again.body["changed"], again.body["version"]) == (200, False, 1)
    assert books() == before
    newer = put(door, feed_seq=19)
    assert (newer.body["changed"], newer.body["version"]) == (False, 1)


def test_what_is_not_named_stays(door: Door) -> None:
    put(door)
    answer = door.send("PUT", "/orders/4821", {"feed_seq": 19, "currency": "USD"})
    assert (answer.status, answer.body["changed"]) == (200, False)
    order = Order.objects.get()
    assert (order.customer_ref, order.return_state, len(order.facts)) == ("cus_204", "received", 1)
    assert Payment.objects.get().captured_minor == 12900


def test_older_and_conflicting_snapshots_are_refused(door: Door) -> None:
    put(door)
    before = books()
    older = put(door, feed_seq=17, customer_ref="cus_1")
    conflicting = put(door, customer_ref="cus_1")
    assert (older.status, older.code) == (409, "older_snapshot")
    assert (conflicting.status, conflicting.code) == (409, "snapshot_conflict")
    assert older.body["operation_id"] is None
    assert books() == before


@pytest.mark.parametrize("name", ["version", "frozen", "refunded_minor", "held_minor", "order_ref"])
def test_what_is_ours_cannot_be_fed(door: Door, name: str) -> None:
    put(door)
    before = books()
    ours: dict[str, Any] = {name: 1}
    answer = put(door, feed_seq=19, **ours)
    assert (answer.status, answer.code, answer.body["field"]) == (422, "field_unknown", name)
    assert books() == before


def payment(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = facts()["payments"][0]
    return usual | changes


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"currency": "XYZ"}, "currency_unknown", "currency"),
        ({"currency": ...}, "field_missing", "currency"),
        ({"feed_seq": "18"}, "field_format", "feed_seq"),
        ({"feed_seq": -1}, "field_format", "feed_seq"),
        ({"customer_ref": "4111111111111111"}, "text_card_number", "customer_ref"),
        ({"customer_ref": "x" * 129}, "text_too_long", "customer_ref"),
        ({"return_state": "x" * 65}, "text_too_long", "return_state"),
        ({"links": {"order": "http://localhost/1"}}, "link_not_allowed", "links"),
        ({"links": {"order": "https://evil.example/1"}}, "link_not_allowed", "links"),
        ({"links": {"order": "https://localhost@evil.example/"}}, "link_not_allowed", "links"),
        ({"facts": [{"label": "a"}]}, "field_missing", "facts.0.value"),
        ({"facts": [{"label": "a", "value": "b\x00"}]}, "text_control", "facts.0.value"),
        (
            {"facts": [{"label": "a", "value": "4111 1111 1111 1111"}]},
            "text_card_number",
            "facts.value",
        ),
        (
            {"lines": [{"name": "a", "amount_minor": 1.5}]},
            "amount_fraction",
            "lines.0.amount_minor",
        ),
        ({"payments": [payment(ref="")]}, "field_format", "payments.0.ref"),
        (
            {"payments": [payment(ref=" ")], "external_refunds": []},
            "field_missing",
            "payment_ref",
        ),
        ({"payments": [payment(state="paid")]}, "payment_state_unknown", "payments.0.state"),
        (
            {"payments": [payment(captured_minor=-1)]},
            "amount_negative",
            "payments.0.captured_minor",
        ),
        (
            {"payments": [payment(captured_minor=10**12)]},
            "amount_too_large",
            "payments.0.captured_minor",
        ),
        (
            {"payments": [payment(captured_minor="12900")]},
            "amount_format",
            "payments.0.captured_minor",
        ),
        (
            {"payments": [payment(captured_minor=True)]},
            "amount_format",
            "payments.0.captured_minor",
        ),
        ({"payments": [payment(held_minor=1)]}, "field_unknown", "payments.0.held_minor"),
    ],
)
def test_each_wrong_fact_has_its_own_code(
    door: Door, changes: dict[str, Any], code: str, field: str
) -> None:
    before = books()
    answer = put(door, **changes)
    assert (answer.status, answer.code, answer.body["field"]) == (422, code, field)
    assert books() == before


@pytest.mark.parametrize(
    ("instant", "code"),
    [
        ("2026-11-29T13:59:00", "datetime_naive"),
        ("2026-11-29", "datetime_naive"),
        ("2026-11-29 13:59", "datetime_naive"),
        ("yesterday", "field_format"),
        ("", "field_format"),
        (1764424740, "field_format"),
        ("0001-01-01T00:00:00+14:00", "field_format"),
        ("2026-02-30T00:00:00Z", "field_format"),
    ],
)
@pytest.mark.parametrize("place", ["facts_as_of", "placed_at", "captured_at"])
def test_b125_an_instant_without_a_zone_is_refused_at_the_edge(
    door: Door, instant: object, code: str, place: str
) -> None:
    before = books()
    changes = (
        {"payments": [payment(captured_at=instant)]} if place == "captured_at" else {place: instant}
    )
    answer = put(door, **changes)
    assert (answer.status, answer.code) == (422, code)
    assert str(answer.body["field"]).endswith(place)
    assert books() == before


def test_payments_and_refunds_never_move(door: Door) -> None:
    put(door)
    before = books()
    taken = put(door, "4822", external_refunds=[])
    other_currency = put(door, feed_seq=19, currency="EUR")
    assert (taken.status, taken.code) == (409, "payment_moved")
    assert (other_currency.status, other_currency.code) == (409, "currency_moved")
    elsewhere = put(
        door,
        "4822",
        payments=[payment(ref="pi_4822")],
        external_refunds=[facts()["external_refunds"][0] | {"payment_ref": "pi_4822"}],
    )
    assert (elsewhere.status, elsewhere.code) == (409, "external_refund_moved")
    assert books() == before


def test_a_refund_of_a_payment_that_is_not_there_is_refused_whole(door: Door) -> None:
    before = books()
    answer = put(door, payments=[])
    assert (answer.status, answer.code) == (404, "not_found")
    assert books() == before


def test_facts_of_other_accounts_cannot_be_fed(door: Door, cast: Cast) -> None:
    put(door)
    cast.foxtrot.accounts = ["plain-forever"]
    cast.foxtrot.save()
    other = Door(cast.foxtrot, "order:write")
    before = books()
    foreign = put(other, "99", external_refunds=[])
    hidden = other.send("PUT", "/orders/4821", {"currency": "USD", "customer_ref": "cus_evil"})
    for answer in (foreign, hidden):
        assert (answer.status, answer.code) == (404, "not_found")
    assert books() == before
    assert Order.objects.get().customer_ref == "cus_204"


def test_a_change_of_refundable_facts_moves_the_version(door: Door) -> None:
    put(door)
    answer = put(door, feed_seq=19, payments=[payment(captured_minor=13000)])
    assert (answer.body["version"], answer.body["changed"]) == (2, True)
    assert answer.body["payments"][0]["refundable_minor"] == 10000


def test_references_with_slashes_and_accents_are_found_again(door: Door, cast: Cast) -> None:
    for ref, path in (("2026/0001", "2026%2F0001"), ("Zo\u00eb 1", "Zo%C3%AB%201")):
        assert put(door, path, payments=[], external_refunds=[]).body["order_ref"] == ref
        assert Door(cast.echo).get(f"/orders/{path}/refunds").body["order_ref"] == ref


def test_references_that_nothing_could_store_are_refused(door: Door) -> None:
    before = books()
    for path, code in (
        ("%00", "text_control"),
        ("x" * 129, "text_too_long"),
        ("%20", "field_missing"),
    ):
        answer = put(door, path, payments=[], external_refunds=[])
        assert (answer.status, answer.code, answer.body["field"]) == (422, code, "order_ref")
    assert books() == before


def batch(door: Door, *lines: object) -> list[dict[str, Any]]:
    content = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    answer = door.call("POST", "/orders:batch", content, content_type="application/x-ndjson")
    assert answer.status == 200
    answered: list[dict[str, Any]] = answer.body["lines"]
    return answered


def small(ref: str, **changes: Any) -> dict[str, Any]:
    return {"order_ref": ref, "feed_seq": 1, "currency": "USD"} | changes


def test_a_batch_answers_each_line_for_itself(door: Door) -> None:
    answers = batch(
        door,
        small("1"),
        "{not json",
        "",
        small("2", frozen=True),
        small("3"),
        small("1"),
        small("1", feed_seq=0),
        {"currency": "USD"},
        "[]",
    )
    assert [(each["line"], each["status"]) for each in answers] == [
        (1, 201),
        (2, 400),
        (4, 422),
        (5, 201),
        (6, 200),
        (7, 409),
        (8, 422),
        (9, 400),
    ]
    codes = [each.get("code") for each in answers]
    assert codes == [
        None,
        "malformed_json",
        "field_unknown",
        None,
        None,
        "older_snapshot",
        "field_missing",
        "malformed_json",
    ]
    # A refused line names its order too, wherever the line can be read.
    assert [each["order_ref"] for each in answers] == ["1", None, "2", "3", "1", "1", None, None]
    assert answers[0]["changed"] is True
    assert set(Order.objects.values_list("ref", flat=True)) == {"1", "3"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"state": "lost"}, "payments.1.state"),
        ({"provider_account": "nowhere"}, "payments.1.provider_account"),
        ({"captured_minor": "100"}, "payments.1.captured_minor"),
    ],
)
def test_a_field_of_a_payment_is_named_with_its_place_whatever_is_wrong_with_it(
    door: Door, changes: dict[str, Any], field: str
) -> None:
    door.agent.accounts = [*door.agent.accounts, "nowhere"]
    door.agent.save()
    payments = [payment(ref="pi_first"), payment() | changes]
    [refused] = batch(door, small("1", payments=payments))
    assert (refused["status"], refused["field"], refused["order_ref"]) == (422, field, "1")
    assert not Order.objects.exists()


def test_a_fraction_of_captured_minor_units_is_not_sent_to_a_field_that_the_feed_has_not(
    door: Door,
) -> None:
    line = json.dumps(small("1", payments=[payment(captured_minor=100)]))
    [refused] = batch(door, line.replace(": 100,", ": 100.0,"))
    assert (refused["code"], refused["order_ref"]) == ("amount_fraction", "1")
    assert refused["what_to_do"] == "Send a whole number such as 7900."


def test_a_batch_has_a_largest_size(door: Door) -> None:
    before = books()
    for content in ("{}\n" * 1001, "x" * 2_000_001):
        answer = door.call("POST", "/orders:batch", content, content_type="application/x-ndjson")
        assert (answer.status, answer.code) == (413, "body_too_large")
    answer = door.call("POST", "/orders:batch", json.dumps(small("1")))
    assert (answer.status, answer.code) == (415, "not_json")
    assert books() == before
    [too_large] = batch(door, small("1", customer_ref="x" * 65_536))
    assert (too_large["status"], too_large["code"]) == (413, "body_too_large")


@pytest.mark.django_db(transaction=True)
def test_a_batch_says_which_lines_the_database_did_not_take(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session holds the order of line 2, so its lock does not come in time."""
    build.order("2", payment_ref="pi_2")
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as other:
        other.execute("SELECT 1 FROM orders WHERE ref = '2' FOR UPDATE")
        answers = batch(door, small("1"), small("2"), small("3"))
        other.rollback()
    assert [each["status"] for each in answers] == [201, 503, 503]
    assert {each.get("code") for each in answers[1:]} == {"database_unavailable"}
    assert not Order.objects.filter(ref="3").exists()
    assert [each["status"] for each in batch(door, small("1"), small("2"), small("3"))] == [
        200,
        200,
        201,
    ]
