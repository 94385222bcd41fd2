"""Stripe's own SDK, unchanged, against the stripe dialect."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from tests.provider_process import SandboxProcess

MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"


def client_of(sandbox: SandboxProcess, api_key: str = "sandbox-key-stripe-main") -> Any:
    return stripe.StripeClient(
        api_key, base_addresses={"api": sandbox.stripe_base}, max_network_retries=0
    )


@pytest.fixture
def client(sandbox: SandboxProcess) -> Any:
    sandbox.payment("pi_4821", 12900, account="stripe-main")
    return client_of(sandbox)


def refund(client: Any, amount: int = 1000, key: str | None = None, **more: Any) -> Any:
    parameters = {
        "payment_intent": "pi_4821",
        "amount": amount,
        "reason": "requested_by_customer",
        "metadata": {"aftersend_operation": MARKER},
    }
    options = {} if key is None else {"idempotency_key": key}
    return client.v1.refunds.create(parameters | more, options)


def headers_of(made: Any) -> Any:
    return made.last_response.headers


def raised(kind: type[stripe.StripeError], call: Callable[[], object]) -> Any:
    """The error of this very kind that the call raises."""
    with pytest.raises(kind) as caught:
        call()
    return caught.value


def test_a_refund_is_created_and_stands_in_the_book(sandbox: SandboxProcess, client: Any) -> None:
    made = refund(client, 7900, "key-1")
    assert (made.object, made.amount, made.currency, made.status) == (
        "refund",
        7900,
        "usd",
        "succeeded",
    )
    assert made.payment_intent == "pi_4821"
    assert made.charge == "ch_4821"
    assert made.metadata["aftersend_operation"] == MARKER
    assert headers_of(made)["Request-Id"].startswith("req_")
    [booked] = sandbox.refunds("stripe-main")
    assert booked["id"] == made.id
    assert (booked["aftersend_operation"], booked["key"], booked["amount_minor"]) == (
        MARKER,
        "key-1",
        7900,
    )
    assert (booked["by"], booked["executions"]) == ("api", 1)


def test_a_refund_is_retrieved_and_updated(client: Any) -> None:
    made = refund(client)
    client.v1.refunds.update(made.id, {"metadata": {"ticket": "T-551"}})
    found = client.v1.refunds.retrieve(made.id)
    assert found.id == made.id
    assert found.metadata.to_dict() == {"aftersend_operation": MARKER, "ticket": "T-551"}


def test_an_unknown_refund_is_a_missing_resource(client: Any) -> None:
    error = raised(stripe.InvalidRequestError, lambda: client.v1.refunds.retrieve("re_none"))
    assert (error.http_status, error.code) == (404, "resource_missing")


def test_refunds_are_listed_by_payment_newest_first_over_all_pages(
    sandbox: SandboxProcess, client: Any
) -> None:
    sandbox.payment("pi_other", 5000, account="stripe-main")
    refund(client, 100, payment_intent="pi_other")
    made = [refund(client, 100 + number).id for number in range(5)]
    page = client.v1.refunds.list({"payment_intent": "pi_4821", "limit": 2})
    assert (page.object, page.has_more, page.url) == ("list", True, "/v1/refunds")
    assert [one.id for one in page.auto_paging_iter()] == made[::-1]
    by_charge = client.v1.refunds.list({"charge": "ch_4821"})
    assert [one.id for one in by_charge.data] == made[::-1]


def test_a_page_before_a_refund_holds_the_newer_ones(client: Any) -> None:
    made = [refund(client, 100 + number).id for number in range(4)]
    page = client.v1.refunds.list({"ending_before": made[0], "limit": 2})
    assert [one.id for one in page.data] == [made[2], made[1]]
    assert page.has_more is True


def test_a_list_is_bounded_by_the_time_of_creation(sandbox: SandboxProcess, client: Any) -> None:
    old = refund(client)
    sandbox.advance(100)
    new = refund(client)
    listed = client.v1.refunds.list({"created": {"gt": old.created}})
    assert [one.id for one in listed.data] == [new.id]
    listed = client.v1.refunds.list({"created": {"lte": old.created}})
    assert [one.id for one in listed.data] == [old.id]
    listed = client.v1.refunds.list({"created": new.created})
    assert [one.id for one in listed.data] == [new.id]


def test_a_list_of_an_unknown_payment_is_an_error_and_not_empty(client: Any) -> None:
    error = raised(
        stripe.InvalidRequestError, lambda: client.v1.refunds.list({"payment_intent": "pi_none"})
    )
    assert error.code == "resource_missing"


def test_only_a_refund_that_waits_for_the_customer_can_be_canceled(
    sandbox: SandboxProcess, client: Any
) -> None:
    made = refund(client)
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.cancel(made.id)
    sandbox.control("POST", f"/refunds/{made.id}/status", {"to": "requires_action"})
    assert client.v1.refunds.cancel(made.id).status == "canceled"
    assert [one["status"] for one in sandbox.refunds()] == ["canceled"]


def test_a_payment_intent_is_retrieved(client: Any) -> None:
    found = client.v1.payment_intents.retrieve("pi_4821")
    assert (found.id, found.amount_received, found.currency) == ("pi_4821", 12900, "usd")
    assert found.latest_charge == "ch_4821"


def test_the_same_key_replays_the_first_answer(sandbox: SandboxProcess, client: Any) -> None:
    first = refund(client, key="key-1")
    again = refund(client, key="key-1")
    assert again.id == first.id
    assert "Idempotent-Replayed" not in headers_of(first)
    assert headers_of(again)["Idempotent-Replayed"] == "true"
    assert len(sandbox.refunds()) == 1


def test_a_replay_is_a_snapshot_of_the_first_answer(sandbox: SandboxProcess, client: Any) -> None:
    first = refund(client, key="key-1")
    sandbox.control("POST", f"/refunds/{first.id}/status", {"to": "failed"})
    assert refund(client, key="key-1").status == "succeeded"
    assert client.v1.refunds.retrieve(first.id).status == "failed"


def test_the_same_key_with_other_parameters_is_an_idempotency_error(
    sandbox: SandboxProcess, client: Any
) -> None:
    refund(client, 1000, "key-1")
    error = raised(stripe.IdempotencyError, lambda: refund(client, 2000, "key-1"))
    assert error.http_status == 400
    assert [one["amount_minor"] for one in sandbox.refunds()] == [1000]


def test_a_key_in_use_is_a_conflict(sandbox: SandboxProcess, client: Any) -> None:
    sandbox.fault("hold", account="stripe-main", execute="on_release")
    made: list[Any] = []
    first = threading.Thread(target=lambda: made.append(refund(client, key="key-1")))
    first.start()
    sandbox.wait_for_hold()
    error = raised(stripe.APIError, lambda: refund(client, key="key-1"))
    assert not isinstance(error, stripe.IdempotencyError)
    assert error.http_status == 409
    assert error.error.code == "idempotency_key_in_use"
    assert sandbox.refunds() == []
    sandbox.release()
    first.join(5)
    assert [one["id"] for one in sandbox.refunds()] == [made[0].id]
    assert refund(client, key="key-1").id == made[0].id


def test_a_500_after_execution_is_replayed_for_good(sandbox: SandboxProcess, client: Any) -> None:
    sandbox.fault("error_after_commit", account="stripe-main")
    for _ in range(3):
        error = raised(stripe.APIError, lambda: refund(client, key="key-1"))
        assert error.http_status == 500
    assert error.headers["Idempotent-Replayed"] == "true"
    assert len(sandbox.refunds()) == 1


def test_more_than_is_left_is_refused_and_the_refusal_is_stored(
    sandbox: SandboxProcess, client: Any
) -> None:
    refund(client, 10000)
    for replayed in (None, "true"):
        error = raised(stripe.InvalidRequestError, lambda: refund(client, 2901, "key-2"))
        assert error.http_status == 400
        assert error.error.type == "invalid_request_error"
        assert error.headers.get("Idempotent-Replayed") == replayed
    refund(client, 2900)
    error = raised(stripe.InvalidRequestError, lambda: refund(client, 1))
    assert error.code == "charge_already_refunded"
    assert sum(one["amount_minor"] for one in sandbox.refunds()) == 12900


def test_a_disputed_payment_is_refused(sandbox: SandboxProcess, client: Any) -> None:
    sandbox.control("POST", "/dispute", {"account": "stripe-main", "payment": "pi_4821"})
    error = raised(stripe.InvalidRequestError, lambda: refund(client))
    assert error.code == "charge_disputed"
    assert sandbox.refunds() == []


def test_a_key_is_pruned_after_a_day_and_then_pays_again(
    sandbox: SandboxProcess, client: Any
) -> None:
    first = refund(client, key="key-1")
    sandbox.advance(24 * 3600 - 60)
    assert refund(client, key="key-1").id == first.id
    sandbox.advance(60)
    assert refund(client, key="key-1").id != first.id
    assert [one["executions"] for one in sandbox.refunds()] == [2, 2]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"amount": "ten"}, "parameter_invalid_integer"),
        ({"colour": "red"}, "parameter_unknown"),
        ({"reason": "boredom"}, "parameter_unknown"),
        ({"payment_intent": "pi_none"}, "resource_missing"),
        ({"charge": "ch_4821"}, "parameter_missing"),
    ],
)
def test_an_error_in_the_parameters_is_not_stored_under_the_key(
    sandbox: SandboxProcess, client: Any, wrong: dict[str, Any], code: str
) -> None:
    error = raised(stripe.InvalidRequestError, lambda: refund(client, key="key-1", **wrong))
    assert error.code == code
    assert refund(client, key="key-1").status == "succeeded"
    assert len(sandbox.refunds()) == 1


def test_a_rate_limit_is_not_stored_under_the_key(sandbox: SandboxProcess, client: Any) -> None:
    sandbox.fault("rate_429", account="stripe-main", retry_after=7)
    error = raised(stripe.RateLimitError, lambda: refund(client, key="key-1"))
    assert error.error.code == "rate_limit"
    assert error.headers["Retry-After"] == "7"
    assert sandbox.refunds() == []
    assert refund(client, key="key-1").status == "succeeded"


def test_a_revoked_key_is_turned_away_in_stripes_envelope(
    sandbox: SandboxProcess, client: Any
) -> None:
    sandbox.configure("stripe-main", api_key="sk_new")
    error = raised(stripe.AuthenticationError, lambda: refund(client, key="key-1"))
    assert error.error.type == "invalid_request_error"
    assert sandbox.refunds() == []
    assert refund(client_of(sandbox, "sk_new"), key="key-1").status == "succeeded"


def test_a_success_can_be_taken_back_later(sandbox: SandboxProcess, client: Any) -> None:
    sandbox.fault("take_back", account="stripe-main", seconds=86400)
    made = refund(client)
    assert made.status == "succeeded"
    sandbox.advance(86400)
    found = client.v1.refunds.retrieve(made.id)
    assert (found.status, found.failure_reason) == ("failed", "unknown")


def test_in_the_wrong_mode_nothing_of_this_payment_exists(
    sandbox: SandboxProcess, client: Any
) -> None:
    made = refund(client)
    for on in ("list", "retrieve"):
        sandbox.fault("wrong_mode", account="stripe-main", on=on)
    error = raised(
        stripe.InvalidRequestError, lambda: client.v1.refunds.list({"payment_intent": "pi_4821"})
    )
    assert error.code == "resource_missing"
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.refunds.retrieve(made.id)


def test_a_connection_closed_after_execution_leaves_the_refund_in_the_book(
    sandbox: SandboxProcess, client: Any
) -> None:
    sandbox.fault("drop_after_commit", account="stripe-main")
    with pytest.raises(stripe.APIConnectionError):
        refund(client, key="key-1")
    [booked] = sandbox.refunds()
    assert refund(client, key="key-1").id == booked["id"]
