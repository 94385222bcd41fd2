"""What an account shows of all its payments: refunds and disputes since an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of


def by_hand(sandbox: SandboxProcess, payment: str, account: str = "plain-main") -> str:
    fields = {"account": account, "payment": payment, "amount_minor": 100}
    made: str = sandbox.control("POST", "/external_refund", fields)["id"]
    return made


def dispute(sandbox: SandboxProcess, state: str, account: str = "plain-main") -> str:
    fields = {"account": account, "payment": "pi_4821", "state": state}
    named: str = sandbox.control("POST", "/dispute", fields)["dispute"]
    return named


def test_refunds_of_all_payments_are_listed_since_an_instant(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    for ref in ("pi_4821", "pi_4822"):
        sandbox.payment(ref)
    first = by_hand(sandbox, "pi_4821")
    sandbox.advance(3600)
    later = [by_hand(sandbox, ref) for ref in ("pi_4822", "pi_4821")]
    since = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    shown = plain.get("/refunds", created_from=since, limit="1").json()
    assert [each["id"] for each in shown["items"]] == later[:1]
    more = plain.get("/refunds", created_from=since, after=shown["next"]).json()
    assert ([each["id"] for each in more["items"]], more["next"]) == (later[1:], None)
    assert [each["id"] for each in plain.get("/refunds").json()["items"]] == [first, *later]
    assert code_of(plain.get("/refunds", created_from="noon")) == "query_invalid"


def test_a_dispute_is_listed_with_what_became_of_it(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    opened = dispute(sandbox, "opened")
    [shown] = plain.get("/disputes").json()["items"]
    assert (shown["id"], shown["payment"], shown["status"]) == (opened, "pi_4821", "opened")
    assert dispute(sandbox, "won") == opened
    assert dispute(sandbox, "opened") != opened
    statuses = [each["status"] for each in plain.get("/disputes").json()["items"]]
    assert statuses == ["won", "opened"]


def test_faults_of_lists_strike_the_lists_of_an_account(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment()
    by_hand(sandbox, "pi_4821")
    sandbox.fault("list_missing_page", on="list", times=None)
    for path in ("/refunds", "/disputes"):
        cursor = plain.get(path).json()["next"]
        assert cursor
        assert code_of(plain.get(path, after=cursor)) == "cursor_not_found"


@pytest.fixture
def client(sandbox: SandboxProcess) -> Any:
    sandbox.payment("pi_4821", 12900, account="stripe-main")
    return stripe.StripeClient(
        "sandbox-key-stripe-main",
        base_addresses={"api": sandbox.stripe_base},
        max_network_retries=0,
    )


def test_stripes_own_sdk_pages_through_both_lists(sandbox: SandboxProcess, client: Any) -> None:
    refs = [by_hand(sandbox, "pi_4821", "stripe-main") for _ in range(3)]
    since = int(datetime.now(UTC).timestamp()) - 60
    listed = client.v1.refunds.list({"created": {"gte": since}, "limit": 2})
    assert [each.id for each in listed.auto_paging_iter()] == refs[::-1]
    assert list(client.v1.refunds.list({"created": {"gte": since + 3600}})) == []
    opened = dispute(sandbox, "opened", "stripe-main")
    [shown] = client.v1.disputes.list({"created": {"gte": since}}).auto_paging_iter()
    assert (shown.id, shown.status, shown.payment_intent) == (opened, "needs_response", "pi_4821")
    dispute(sandbox, "lost", "stripe-main")
    [shown] = client.v1.disputes.list().data
    assert shown.status == "lost"
