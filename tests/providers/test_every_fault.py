"""Every fault that the sandbox knows for a refund request: what we read, and that we asked once."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from refunds.domain.outcome import Answer, Expected, Outcome
from refunds.providers import http, registry
from refunds.providers.base import Account, Wish
from sandbox.catalogue import CATALOGUE
from tests.provider_process import SandboxProcess

# For answers that would never end, and for all others on a busy machine.
IMPATIENT_SECONDS, TOTAL_SECONDS = 0.4, 10
NOT_SENT, UNANSWERED = Outcome.NOT_SENT, Outcome.UNANSWERED
CONFIRMED, ACCEPTED, TURNED_AWAY = Outcome.CONFIRMED, Outcome.ACCEPTED, Outcome.TURNED_AWAY
# fault, its options, what we read, executions in the book
FAULTS: dict[str, list[tuple[dict[str, Any], Outcome, int]]] = {
    "refuse_connect": [({"seconds": 60}, NOT_SENT, 0)],
    "reset_before": [({}, UNANSWERED, 0)],
    "drop_before_commit": [({}, UNANSWERED, 0)],
    "drop_after_commit": [({}, UNANSWERED, 1)],
    "hold": [({}, UNANSWERED, 1), ({"execute": "on_release"}, UNANSWERED, 0)],
    "land_late": [({}, UNANSWERED, 0)],
    "land_past_flight": [({}, UNANSWERED, 0)],
    "delay": [({"seconds": 0.05}, CONFIRMED, 1), ({"seconds": 60}, UNANSWERED, 1)],
    "drip": [({}, UNANSWERED, 1), ({"part": "all"}, UNANSWERED, 1)],
    "busy_409": [({}, UNANSWERED, 0), ({"executed": True}, UNANSWERED, 1)],
    "rate_429": [
        ({}, TURNED_AWAY, 0),
        ({"retry_after": 3}, TURNED_AWAY, 0),
        ({"envelope": "foreign"}, UNANSWERED, 0),
        ({"envelope": "foreign", "executed": True}, UNANSWERED, 1),
    ],
    "duplicate_429": [({}, UNANSWERED, 0), ({"executed": True}, UNANSWERED, 1)],
    "auth_401": [
        ({}, TURNED_AWAY, 0),
        ({"envelope": "foreign"}, UNANSWERED, 0),
        ({"envelope": "foreign", "executed": True}, UNANSWERED, 1),
    ],
    "auth_403": [
        ({}, TURNED_AWAY, 0),
        ({"envelope": "foreign"}, UNANSWERED, 0),
        ({"envelope": "foreign", "executed": True}, UNANSWERED, 1),
    ],
    "error_after_commit": [({}, UNANSWERED, 1), ({"status": 503}, UNANSWERED, 1)],
    "stored_500": [({}, UNANSWERED, 1)],
    "truncated": [({}, UNANSWERED, 1)],
    "html_200": [({}, UNANSWERED, 1)],
    "huge_body": [({}, UNANSWERED, 1), ({"bytes": 300 * 1024}, UNANSWERED, 1)],
    "bad_json": [({}, UNANSWERED, 1)],
    "wrong_amount": [({}, UNANSWERED, 1)],
    "wrong_currency": [({}, UNANSWERED, 1)],
    "redirect": [
        ({}, UNANSWERED, 1),
        ({"status": 307}, UNANSWERED, 1),
        ({"location": "http://169.254.169.254/latest/meta-data"}, UNANSWERED, 1),
    ],
    "execute_twice": [({}, CONFIRMED, 2)],
    "forget_key": [({}, CONFIRMED, 1)],
    "fail_later": [({}, ACCEPTED, 1)],
    "cancel_later": [({}, ACCEPTED, 1)],
    "ask_customer": [({}, ACCEPTED, 1)],
    "take_back": [({}, CONFIRMED, 1)],
    "already_refunded": [({}, UNANSWERED, 1)],
}
CASES = [
    pytest.param(
        fault,
        options,
        outcome,
        executed,
        id="-".join([fault, *(f"{name}-{value}" for name, value in options.items())]),
    )
    for fault, rows in FAULTS.items()
    for options, outcome, executed in rows
]


def test_every_fault_of_a_refund_request_is_in_the_table() -> None:
    assert set(FAULTS) == {name for name, kind in CATALOGUE.items() if "create" in kind.on}


@pytest.fixture(params=["plain-main", "stripe-main"])
def account(request: pytest.FixtureRequest, provider: SandboxProcess) -> Account:
    provider.payment(account=request.param)
    return registry.account(request.param)


def ask(account: Account, marker: str, total_seconds: float = TOTAL_SECONDS) -> Answer:
    """One attempt, as the dispatcher makes it."""
    adapter = registry.adapter(account)
    body = adapter.body(
        Wish(
            marker=marker,
            payment_ref="pi_4821",
            amount_minor=1000,
            currency="USD",
            reason_code="damaged_item",
        )
    )
    raw = http.call(
        adapter.create_refund(account, body, marker),
        total_seconds=total_seconds,
        body_bytes_max=262_144,
        send_deadline=time.monotonic() + 5,
    )
    expected = Expected(marker=marker, payment_ref="pi_4821", amount_minor=1000, currency="USD")
    return adapter.read_answer(raw, expected)


@pytest.mark.parametrize(("fault", "options", "outcome", "executed"), CASES)
def test_rule_08_and_09_a_fault_is_read_by_the_allow_list_after_one_request(
    provider: SandboxProcess,
    account: Account,
    fault: str,
    options: dict[str, Any],
    outcome: Outcome,
    executed: int,
) -> None:
    marker = str(uuid.uuid4())
    earlier = 0
    if fault == "already_refunded":
        assert ask(account, marker).outcome is CONFIRMED
        earlier = 1
    provider.fault(fault, account=account.name, **options)
    endless = fault in ("hold", "drip") or options.get("seconds") == 60
    total_seconds = IMPATIENT_SECONDS if endless else TOTAL_SECONDS
    began = time.monotonic()
    answer = ask(account, marker, total_seconds)
    assert time.monotonic() - began < total_seconds + 5
    assert answer.outcome is outcome, answer.because
    assert answer.because
    calls = provider.calls(account.name)
    assert len(calls) == earlier + (0 if outcome is NOT_SENT else 1)
    assert {call["method"] for call in calls} <= {"POST"}
    assert len(provider.refunds(account.name)) == executed
    provider.clear_faults()


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("plain-main", {"reasons_accepted": []}, {}, "reason_not_accepted"),
    ("plain-main", {}, {"state": "uncaptured"}, "payment_not_refundable"),
    ("plain-main", {}, {"currency": "EUR"}, "currency_mismatch"),
    ("stripe-main", {}, {"state": "uncaptured"}, "charge_not_refundable"),
]


@pytest.mark.parametrize(("name", "profile", "payment", "code"), REFUSALS)
def test_rule_09_a_listed_refusal_of_the_provider_is_read_as_one(
    provider: SandboxProcess,
    name: str,
    profile: dict[str, Any],
    payment: dict[str, Any],
    code: str,
) -> None:
    provider.configure(name, **profile)
    provider.payment(account=name, **payment)
    answer = ask(registry.account(name), str(uuid.uuid4()))
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, code)
    assert provider.refunds(name) == []


@pytest.mark.parametrize("name", ["plain-main", "stripe-main"])
def test_rule_10_what_our_own_success_looks_like_the_second_time_is_no_refusal(
    provider: SandboxProcess, name: str
) -> None:
    account = registry.account(name)
    provider.payment(account=name, captured_minor=1500)
    marker = str(uuid.uuid4())
    assert ask(account, marker).outcome is CONFIRMED
    # More than the remainder, nothing left, and a payment that is not there.
    too_much = ask(account, str(uuid.uuid4()))
    assert too_much.outcome is UNANSWERED
    provider.control(
        "POST",
        "/external_refund",
        {"account": name, "payment": "pi_4821", "amount_minor": 500},
    )
    nothing_left = ask(account, str(uuid.uuid4()))
    assert nothing_left.outcome is UNANSWERED
    provider.reset()
    assert ask(account, marker).outcome is UNANSWERED
