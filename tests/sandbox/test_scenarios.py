"""Payments that misbehave by themselves, for any caller, once per refund."""

from __future__ import annotations

import httpx
import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import NO_TLS, PlainClient, code_of


def statuses(sandbox: SandboxProcess) -> list[str]:
    return [refund["status"] for refund in sandbox.refunds()]


@pytest.mark.parametrize("payment", ["pi_demo-answer-lost", "pi_demo-no-lookup"])
def test_a_refund_of_that_payment_is_made_and_its_answer_is_lost_every_time(
    sandbox: SandboxProcess, plain: PlainClient, payment: str
) -> None:
    sandbox.payment(payment)
    for number in (1, 2):
        with pytest.raises(httpx.RemoteProtocolError):
            plain.refund(100 * number, payment=payment, key=f"key-{number}", marker=f"m-{number}")
        assert statuses(sandbox) == ["succeeded"] * number
        again = plain.refund(
            100 * number, payment=payment, key=f"key-{number}", marker=f"m-{number}"
        )
        assert again.status_code == 201
    assert statuses(sandbox) == ["succeeded"] * 2
    assert [call["faults"] for call in sandbox.calls()] == [["drop_after_commit"], []] * 2


def test_an_error_500_comes_after_the_refund_was_made(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment("pi_demo-500-after-commit")
    answer = plain.refund(payment="pi_demo-500-after-commit")
    assert (answer.status_code, code_of(answer)) == (500, "server_error")
    assert statuses(sandbox) == ["succeeded"]


def test_the_first_try_of_each_refund_is_turned_away_and_the_second_passes(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment("pi_demo-turned-away")
    for marker in ("m-1", "m-2"):
        first = plain.refund(payment="pi_demo-turned-away", marker=marker, key=marker)
        assert (first.status_code, code_of(first)) == (429, "rate_limited")
        second = plain.refund(payment="pi_demo-turned-away", marker=marker, key=marker)
        assert second.status_code == 201
    assert statuses(sandbox) == ["succeeded"] * 2


def test_a_refund_waits_for_the_customer_and_happens_when_they_have_answered(
    sandbox: SandboxProcess,
) -> None:
    sandbox.payment("pi_demo-needs-customer", account="stripe-main")
    with httpx.Client(trust_env=False, verify=NO_TLS) as client:
        made = client.post(
            f"{sandbox.stripe_base}/v1/refunds",
            headers={"Authorization": "Bearer sandbox-key-stripe-main"},
            data={"payment_intent": "pi_demo-needs-customer", "amount": "500"},
        )
    assert made.json()["status"] == "requires_action"
    sandbox.advance(59)
    assert statuses(sandbox) == ["requires_action"]
    sandbox.advance(1)
    assert statuses(sandbox) == ["succeeded"]


def test_a_planned_fault_goes_before_and_other_payments_are_left_alone(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.payment("pi_demo-answer-lost")
    sandbox.payment("pi_demo-answer")
    sandbox.fault("rate_429", match={"payment": "pi_demo-answer-lost"})
    assert plain.refund(payment="pi_demo-answer-lost").status_code == 429
    assert plain.refund(payment="pi_demo-answer").status_code == 201
    assert len(sandbox.refunds()) == 1
