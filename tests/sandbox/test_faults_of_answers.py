"""Faults that spoil, delay or withhold the answer of a request."""

import time
from datetime import datetime

import httpx
import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of

ANSWER_BYTES_MAX = 262144


@pytest.fixture(autouse=True)
def payment(sandbox: SandboxProcess) -> None:
    sandbox.payment()


def last_call(sandbox: SandboxProcess) -> tuple[object, list[str]]:
    call = sandbox.calls()[-1]
    return call["answered"], call["faults"]


def test_a_refused_connection_reaches_nobody(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.fault("refuse_connect", seconds=30)
    with pytest.raises(httpx.ConnectError):
        plain.refund()
    assert sandbox.calls() == []
    sandbox.clear_faults()
    assert plain.refund().status_code == 201


def test_connections_are_accepted_again_when_the_refusal_is_over(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("refuse_connect", seconds=0.2)
    with pytest.raises(httpx.ConnectError):
        plain.refund()
    give_up_at = time.monotonic() + 5
    while True:
        try:
            assert plain.refund().status_code == 201
        except httpx.ConnectError:
            assert time.monotonic() < give_up_at, "the port stayed closed"
        else:
            break


def test_a_reset_before_reading_executes_nothing(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("reset_before")
    with pytest.raises(httpx.ReadError):
        plain.refund()
    assert sandbox.refunds() == []
    assert last_call(sandbox) == ("dropped", ["reset_before"])


def test_a_connection_dropped_before_the_commit_executes_nothing(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("drop_before_commit")
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(key="key-1", marker="m-1")
    assert sandbox.refunds() == []
    assert last_call(sandbox) == ("dropped", ["drop_before_commit"])
    assert plain.refund(key="key-1", marker="m-1").status_code == 201


def test_a_connection_dropped_after_the_commit_has_executed(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("drop_after_commit")
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(key="key-1", marker="m-1")
    [booked] = sandbox.refunds()
    assert last_call(sandbox) == ("dropped", ["drop_after_commit"])
    assert plain.refund(key="key-1", marker="m-1").json()["id"] == booked["id"]


def test_a_truncated_answer_ends_in_the_middle_of_the_body(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("truncated")
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete|without sending complete"):
        plain.refund()
    assert len(sandbox.refunds()) == 1


def test_a_page_of_html_comes_with_status_200(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.fault("html_200")
    answer = plain.refund()
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert len(sandbox.refunds()) == 1


def test_a_huge_answer_is_larger_than_anybody_should_read(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("huge_body")
    answer = plain.refund()
    assert len(answer.content) > ANSWER_BYTES_MAX
    assert answer.json()["id"] == sandbox.refunds()[0]["id"]


def test_a_body_can_be_no_json_at_all(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.fault("bad_json")
    answer = plain.refund()
    assert answer.status_code == 201
    with pytest.raises(ValueError, match="Expecting"):
        answer.json()
    assert len(sandbox.refunds()) == 1


def test_an_answer_can_name_another_amount_or_currency_than_the_book(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("wrong_amount", amount_minor=999)
    sandbox.fault("wrong_currency", after=1)
    assert plain.refund(1000).json()["amount_minor"] == 999
    assert plain.refund(1000).json()["currency"] == "XTS"
    assert [one["amount_minor"] for one in sandbox.refunds()] == [1000, 1000]


def test_a_spoiled_answer_is_not_what_the_key_replays(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("wrong_amount")
    assert plain.refund(1000, key="key-1", marker="m-1").json()["amount_minor"] == 1001
    assert plain.refund(1000, key="key-1", marker="m-1").json()["amount_minor"] == 1000


def test_a_redirect_leads_to_the_refund_that_was_made(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("redirect")
    answer = plain.refund()
    [booked] = sandbox.refunds()
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/plain/plain-main/refunds/{booked['id']}"
    sandbox.fault("redirect", status=307, location="http://169.254.169.254/")
    answer = plain.refund()
    assert (answer.status_code, answer.headers["location"]) == (307, "http://169.254.169.254/")


def test_a_delayed_answer_comes_whole_but_late(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.fault("delay", seconds=0.2)
    started_at = time.monotonic()
    assert plain.refund().status_code == 201
    assert time.monotonic() - started_at >= 0.2
    [booked], [call] = sandbox.refunds(), sandbox.calls()
    answered_after = seconds_between(booked["created_at"], call["answered_at"])
    assert answered_after >= 0.2


def test_a_dripping_answer_outlasts_every_read_timeout(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("drip", seconds=0.002)
    sandbox.fault("drip", after=1, seconds=0.002, part="all")
    plain.timeout = 0.2
    for _ in range(2):
        started_at = time.monotonic()
        assert plain.refund().status_code == 201
        assert time.monotonic() - started_at > 0.3
    assert len(sandbox.refunds()) == 2


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("busy_409", 409, "key_in_use"),
        ("rate_429", 429, "rate_limited"),
        ("duplicate_429", 429, "duplicate_request"),
        ("auth_401", 401, "unauthorized"),
        ("auth_403", 403, "forbidden"),
    ],
)
def test_a_request_that_is_turned_away_is_not_executed(
    sandbox: SandboxProcess, plain: PlainClient, fault: str, status: int, code: str
) -> None:
    sandbox.fault(fault)
    answer = plain.refund(key="key-1", marker="m-1")
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert sandbox.refunds() == []
    assert plain.refund(key="key-1", marker="m-1").status_code == 201


def test_a_hop_in_front_can_turn_away_what_it_has_passed_on(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("rate_429", envelope="foreign", executed=True, retry_after="-1")
    answer = plain.refund()
    assert answer.status_code == 429
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["retry-after"] == "-1"
    assert "sandbox-account" not in answer.headers
    assert len(sandbox.refunds()) == 1


def test_an_error_after_the_commit_can_carry_any_status(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("error_after_commit", status=503)
    assert plain.refund().status_code == 503
    assert len(sandbox.refunds()) == 1


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
