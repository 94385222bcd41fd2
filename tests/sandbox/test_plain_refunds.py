"""Refunds, refusals and lookups of the plain dialect."""

from typing import Any

import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of

MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"


def test_a_refund_is_answered_as_it_stands_in_the_book(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    answer = plain.refund(7900, key="key-1", marker=MARKER)
    made = answer.json()
    assert answer.status_code == 201
    assert made | {"id": "", "created_at": ""} == {
        "id": "",
        "payment": "pi_4821",
        "amount_minor": 7900,
        "currency": "USD",
        "aftersend_operation": MARKER,
        "status": "succeeded",
        "created_at": "",
    }
    assert made["id"].startswith("rf_")
    [payment] = sandbox.book()["payments"]
    assert (payment["ref"], payment["captured_minor"]) == ("pi_4821", 12900)
    [booked] = payment["refunds"]
    assert booked == {
        "id": made["id"],
        "aftersend_operation": MARKER,
        "key": "key-1",
        "amount_minor": 7900,
        "status": "succeeded",
        "created_at": made["created_at"],
        "by": "api",
        "executions": 1,
    }
    assert plain.get(f"/refunds/{made['id']}").json() == made


@pytest.mark.parametrize(
    ("payment", "asked", "status", "code"),
    [
        ({"state": "uncaptured"}, {}, 422, "payment_not_refundable"),
        ({"state": "disputed"}, {}, 422, "payment_disputed"),
        ({}, {"currency": "EUR"}, 422, "currency_mismatch"),
        ({}, {"amount_minor": 0}, 422, "amount_invalid"),
        ({}, {"amount_minor": -5}, 422, "amount_invalid"),
        ({}, {"amount_minor": 12901}, 409, "amount_exceeds_remaining"),
        ({}, {"payment": "pi_none"}, 404, "payment_not_found"),
        ({}, {"amount_minor": 10.0}, 400, "body_invalid"),
        ({}, {"amount_minor": True}, 400, "body_invalid"),
        ({}, {"reason_code": None}, 400, "body_invalid"),
        ({}, {"note": "hello"}, 400, "body_invalid"),
    ],
)
def test_a_refund_that_cannot_be_made_is_answered_with_its_code(
    sandbox: SandboxProcess,
    plain: PlainClient,
    payment: dict[str, Any],
    asked: dict[str, Any],
    status: int,
    code: str,
) -> None:
    sandbox.payment(**payment)
    answer = plain.refund(**asked)
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert sandbox.refunds() == []


def test_a_reason_outside_the_accounts_list_is_refused(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.configure("plain-main", reasons_accepted=["goodwill"])
    assert code_of(plain.refund()) == "reason_not_accepted"
    assert plain.refund(reason_code="goodwill").status_code == 201


def test_totals_are_policed_to_the_last_minor_unit(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    assert plain.refund(12000).status_code == 201
    assert code_of(plain.refund(901)) == "amount_exceeds_remaining"
    assert plain.refund(900).status_code == 201
    answer = plain.refund(1)
    assert (answer.status_code, code_of(answer)) == (409, "already_refunded")
    assert sum(one["amount_minor"] for one in sandbox.refunds()) == 12900


def test_a_failed_refund_gives_its_amount_back(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    made = plain.refund(12900).json()
    sandbox.control("POST", f"/refunds/{made['id']}/status", {"to": "failed"})
    assert plain.refund(12900).status_code == 201
    assert [one["status"] for one in sandbox.refunds()] == ["failed", "succeeded"]


def test_an_account_that_polices_nothing_pays_more_than_was_captured(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment(account="plain-nokeys")
    for _ in range(2):
        assert plain.refund(12900, account="plain-nokeys").status_code == 201
    assert len(sandbox.refunds()) == 2


def test_a_refund_from_the_dashboard_counts_and_carries_no_marker(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": "pi_4821", "amount_minor": 12000},
    )
    assert code_of(plain.refund(1000)) == "amount_exceeds_remaining"
    [booked] = sandbox.refunds()
    assert (booked["by"], booked["aftersend_operation"], booked["key"]) == ("dashboard", None, None)
    [listed] = plain.get("/refunds", payment="pi_4821").json()["items"]
    assert (listed["id"], listed["aftersend_operation"]) == (booked["id"], None)


def test_a_dispute_that_was_won_lets_refunds_through_again(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    dispute = {"account": "plain-main", "payment": "pi_4821"}
    for state, status in (("opened", 422), ("lost", 422), ("won", 201)):
        sandbox.control("POST", "/dispute", dispute | {"state": state})
        assert plain.refund().status_code == status


def test_a_list_is_in_order_of_execution_and_comes_in_pages(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    sandbox.payment("pi_other", 5000)
    made = [plain.refund(100 + number).json()["id"] for number in range(5)]
    other = plain.refund(100, payment="pi_other").json()["id"]
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = plain.get("/refunds", payment="pi_4821", limit=2, **after).json()
        seen += [one["id"] for one in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == made
    assert [one["id"] for one in plain.get("/refunds").json()["items"]] == [*made, other]


def test_a_list_of_nothing_is_empty_and_complete(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    assert plain.get("/refunds", payment="pi_4821").json() == {"items": [], "next": None}
    assert code_of(plain.get("/refunds", payment="pi_none")) == "payment_not_found"
    assert code_of(plain.get("/refunds", after="rf_none")) == "cursor_not_found"
    assert code_of(plain.get("/refunds", limit=101)) == "query_invalid"


def test_lookups_of_a_lagging_account_follow_the_control_clock(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment(account="plain-lagged")
    made = plain.refund(account="plain-lagged").json()
    assert plain.get("/refunds", account="plain-lagged").json()["items"] == []
    assert plain.get(f"/refunds/{made['id']}", account="plain-lagged").status_code == 404
    sandbox.advance(3)
    assert plain.get("/refunds", account="plain-lagged").json()["items"] == [made]
    assert plain.get(f"/refunds/{made['id']}", account="plain-lagged").json() == made


@pytest.mark.parametrize("account", ["plain-blind", "plain-hooks", "plain-stored500"])
def test_an_account_without_lookup_shows_nothing(
    sandbox: SandboxProcess, plain: PlainClient, account: str
) -> None:
    sandbox.payment(account=account)
    made = plain.refund(account=account).json()
    assert code_of(plain.get("/refunds", account=account)) == "lookup_not_offered"
    assert code_of(plain.get(f"/refunds/{made['id']}", account=account)) == "lookup_not_offered"


def test_an_asynchronous_account_settles_after_five_seconds(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment(account="plain-async")
    made = plain.refund(account="plain-async").json()
    assert made["status"] == "pending"
    sandbox.advance(4)
    path = f"/refunds/{made['id']}"
    assert plain.get(path, account="plain-async").json()["status"] == "pending"
    sandbox.advance(1)
    assert plain.get(path, account="plain-async").json()["status"] == "succeeded"


def test_a_refund_of_another_account_is_not_shown(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    made = plain.refund().json()
    assert plain.get(f"/refunds/{made['id']}", account="plain-forever").status_code == 404


def test_a_key_can_be_changed_and_revoked(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.payment()
    sandbox.configure("plain-main", api_key="rotated")
    answer = plain.refund()
    assert (answer.status_code, code_of(answer)) == (401, "unauthorized")
    assert plain.refund(api_key="rotated").status_code == 201
    sandbox.configure("plain-main", api_key=None)
    assert plain.refund(api_key="rotated").status_code == 401
    assert len(sandbox.refunds()) == 1


def test_each_dialect_serves_its_own_accounts(sandbox: SandboxProcess, plain: PlainClient) -> None:
    answer = plain.refund(account="stripe-main")
    assert (answer.status_code, code_of(answer)) == (404, "account_not_found")
    answer = plain.request("DELETE", "/refunds")
    assert (answer.status_code, code_of(answer)) == (404, "path_not_found")
