"""The past that a book is opened with, told over the control API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of

PAYMENT = {
    "account": "plain-main",
    "ref": "pi_old",
    "currency": "USD",
    "captured_minor": 9000,
    "created_at": "2026-11-01T09:00:00+00:00",
}
REFUND: dict[str, Any] = {
    "id": "rf_old1",
    "account": "plain-main",
    "payment": "pi_old",
    "amount_minor": 4000,
    "marker": "m-old",
    "key": "key-old",
    "statuses": [
        ["2026-11-03T10:00:00+00:00", "pending"],
        ["2026-11-03T10:05:00+00:00", "succeeded"],
    ],
}


def tell(sandbox: SandboxProcess, **changes: Any) -> Any:
    return sandbox.control(
        "POST", "/history", {"payments": [PAYMENT], "refunds": [REFUND | changes]}
    )


def test_the_past_stands_in_the_book_with_its_own_instants(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    assert tell(sandbox) == {"payments": 1, "refunds": 1}
    [payment] = sandbox.book()["payments"]
    [refund] = payment["refunds"]
    assert payment["captured_minor"] == 9000
    assert refund == {
        "id": "rf_old1",
        "aftersend_operation": "m-old",
        "key": "key-old",
        "amount_minor": 4000,
        "status": "succeeded",
        "created_at": "2026-11-03T10:00:00.000Z",
        "by": "api",
        "executions": 1,
    }
    listed = plain.get("/refunds", payment="pi_old").json()["items"]
    assert [each["id"] for each in listed] == ["rf_old1"]


def test_the_same_past_told_again_changes_nothing(sandbox: SandboxProcess) -> None:
    tell(sandbox)
    before = sandbox.book()["payments"]
    assert tell(sandbox) == {"payments": 0, "refunds": 0}
    assert sandbox.book()["payments"] == before


def test_a_refund_of_the_past_counts_against_what_is_left_and_its_key_is_taken(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    tell(sandbox, statuses=[["2199-01-01T00:00:00+00:00", "succeeded"]], key="key-later")
    tell(sandbox, id="rf_old2")
    too_much = plain.refund(6000, payment="pi_old")
    assert code_of(too_much) == "amount_exceeds_remaining"
    sandbox.configure("plain-main", keys="forever", key_window_seconds=None)
    again = plain.refund(1000, payment="pi_old", key="key-old")
    assert code_of(again) == "key_reused"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"payment": "pi_none"}, "no payment 'pi_none'"),
        ({"account": "plain-none"}, "no account 'plain-none'"),
        ({"statuses": []}, "statuses lists"),
        ({"statuses": [["yesterday", "succeeded"]]}, "must be an ISO 8601 instant"),
        ({"statuses": [["2026-11-03T10:00:00", "succeeded"]]}, "needs a time zone"),
        ({"statuses": [["2026-11-03T10:00:00Z", "done"]]}, "a status must be one of"),
        ({"statuses": REFUND["statuses"][::-1]}, "in the order of their instants"),
        ({"amount_minor": "4000"}, "whole minor units"),
        ({"by": "magic"}, "by must be one of"),
        ({"executed": True}, "unknown field 'executed'"),
    ],
)
def test_a_past_that_cannot_be_is_refused_whole(
    sandbox: SandboxProcess, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        tell(sandbox, **changes)
    assert says in str(caught.value)
    assert sandbox.book()["payments"] == []


def test_rules_that_have_struck_make_room_for_new_ones(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    rule = {"account": "plain-main", "on": "create", "fault": "rate_429", "match": {"key": "k"}}
    sandbox.control("POST", "/faults", {"seed": 1, "rules": [rule] * 1000})
    assert plain.refund(key="k").status_code == 429
    sandbox.control("POST", "/faults", {"seed": 2, "rules": [rule]})
    rules = sandbox.control("GET", "/faults")["rules"]
    assert (len(rules), rules[-1]["seed"]) == (1000, 2)
