"""Faults that change what is executed, and when."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime

import httpx
import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient, code_of

MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"


@pytest.fixture(autouse=True)
def payments(sandbox: SandboxProcess) -> None:
    for account in ("plain-main", "plain-nokeys", "plain-async", "plain-unbounded"):
        sandbox.payment(account=account)


def flight_seconds(sandbox: SandboxProcess, account: str) -> float:
    """From the receipt of the account's first call to the execution of its last refund."""
    received_at = datetime.fromisoformat(sandbox.calls(account)[0]["received_at"])
    created_at = datetime.fromisoformat(sandbox.refunds(account)[-1]["created_at"])
    return (created_at - received_at).total_seconds()


def lose_answer(plain: PlainClient, account: str, key: str | None = None) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(key=key, marker=MARKER, account=account)


def test_one_request_can_make_two_refunds(sandbox: SandboxProcess, plain: PlainClient) -> None:
    sandbox.fault("execute_twice")
    made = plain.refund(key="key-1", marker=MARKER).json()
    booked = sandbox.refunds()
    assert booked[0]["id"] == made["id"]
    assert [one["aftersend_operation"] for one in booked] == [MARKER, MARKER]
    assert [one["executions"] for one in booked] == [2, 2]


def test_two_refunds_are_made_even_where_totals_are_policed(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("execute_twice")
    assert plain.refund(12900).status_code == 201
    assert len(sandbox.refunds()) == 2


@pytest.mark.parametrize(
    ("fault", "account", "at_first", "in_the_end"),
    [
        ("fail_later", "plain-main", "pending", "failed"),
        ("cancel_later", "plain-main", "pending", "canceled"),
        ("take_back", "plain-main", "succeeded", "failed"),
        ("fail_later", "plain-async", "pending", "failed"),
    ],
)
def test_a_refund_can_turn_after_the_first_answer(
    sandbox: SandboxProcess,
    plain: PlainClient,
    fault: str,
    account: str,
    at_first: str,
    in_the_end: str,
) -> None:
    sandbox.fault(fault, account=account, seconds=100)
    made = plain.refund(account=account).json()
    assert made["status"] == at_first
    sandbox.advance(99)
    assert sandbox.refunds(account)[0]["status"] == at_first
    sandbox.advance(1)
    assert sandbox.refunds(account)[0]["status"] == in_the_end
    shown = plain.get(f"/refunds/{made['id']}", account=account).json()
    assert shown["status"] == in_the_end


def test_an_asynchronous_refund_can_be_taken_back_after_it_succeeded(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("take_back", account="plain-async", seconds=10)
    plain.refund(account="plain-async")
    seen = []
    for _ in range(3):
        seen.append(sandbox.refunds("plain-async")[0]["status"])
        sandbox.advance(7.5)
    assert seen == ["pending", "succeeded", "failed"]


def test_an_answer_can_be_lost_for_a_refund_that_fails_later(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("drop_after_commit")
    sandbox.fault("fail_later", seconds=5)
    lose_answer(plain, "plain-main")
    sandbox.advance(5)
    assert [one["status"] for one in sandbox.refunds()] == ["failed"]
    assert sandbox.calls()[0]["faults"] == ["drop_after_commit", "fail_later"]


@pytest.mark.parametrize("account", ["plain-main", "plain-nokeys"])
def test_our_own_refund_can_come_back_as_already_refunded(
    sandbox: SandboxProcess, plain: PlainClient, account: str
) -> None:
    sandbox.fault("already_refunded", account=account)
    assert plain.refund(key="key-1", marker=MARKER, account=account).status_code == 201
    answer = plain.refund(key="key-1", marker=MARKER, account=account)
    assert (answer.status_code, code_of(answer)) == (409, "already_refunded")
    assert len(sandbox.refunds()) == 1


def test_a_held_answer_comes_on_release_and_the_refund_was_made_before(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("hold")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(plain.refund, marker=MARKER)
        hold = sandbox.wait_for_hold()
        assert (hold["on"], hold["marker"], hold["executed"]) == ("create", MARKER, True)
        [booked] = sandbox.refunds()
        assert sandbox.calls()[0]["answered"] is None
        assert not asked.done()
        assert sandbox.release(hold["id"]) == 1
        assert asked.result(5).json()["id"] == booked["id"]
    assert sandbox.waiting_holds() == []
    assert sandbox.calls()[0]["answered"] == 201


def test_a_held_execution_happens_on_release_within_the_flight_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("hold", execute="on_release")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(plain.refund)
        assert sandbox.wait_for_hold()["executed"] is False
        assert sandbox.refunds() == []
        sandbox.release()
        assert asked.result(5).status_code == 201
    assert flight_seconds(sandbox, "plain-main") <= 2


def test_a_held_execution_never_happens_after_the_flight_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("hold", execute="on_release")
    with ThreadPoolExecutor(1) as pool:
        asked: Future[httpx.Response] = pool.submit(plain.refund, key="key-1", marker=MARKER)
        sandbox.wait_for_hold()
        sandbox.advance(2.1)
        with pytest.raises(httpx.RemoteProtocolError):
            asked.result(5)
    assert sandbox.release() == 0
    assert sandbox.refunds() == []
    assert plain.refund(key="key-1", marker=MARKER).status_code == 201


def test_without_a_bound_a_held_execution_can_happen_at_any_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("hold", account="plain-unbounded", execute="on_release")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(plain.refund, account="plain-unbounded")
        sandbox.wait_for_hold()
        sandbox.advance(100_000)
        assert sandbox.refunds("plain-unbounded") == []
        sandbox.release()
        assert asked.result(5).status_code == 201
    assert flight_seconds(sandbox, "plain-unbounded") >= 100_000


def test_a_late_landing_stays_inside_the_flight_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late", seconds=1.5)
    lose_answer(plain, "plain-main")
    assert sandbox.refunds() == []
    assert plain.get("/refunds", payment="pi_4821").json()["items"] == []
    sandbox.advance(50)
    [listed] = plain.get("/refunds", payment="pi_4821").json()["items"]
    assert listed["aftersend_operation"] == MARKER
    assert flight_seconds(sandbox, "plain-main") == pytest.approx(1.5, abs=0.002)


def test_a_late_landing_cannot_be_asked_to_exceed_the_flight_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late", seconds=60)
    lose_answer(plain, "plain-main")
    sandbox.advance(100)
    assert flight_seconds(sandbox, "plain-main") <= 2


def test_a_landing_past_the_flight_time_breaks_the_promise(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_past_flight", seconds=30)
    lose_answer(plain, "plain-main")
    sandbox.advance(29)
    assert sandbox.refunds() == []
    sandbox.advance(1)
    assert len(sandbox.refunds()) == 1
    assert flight_seconds(sandbox, "plain-main") == pytest.approx(30, abs=0.002)


def test_a_landing_lands_by_itself_in_real_time(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late", seconds=0.2, connection="hold")
    assert plain.refund(marker=MARKER).status_code == 201
    assert flight_seconds(sandbox, "plain-main") == pytest.approx(0.2, abs=0.002)


def test_a_released_landing_lands_at_once_but_not_before_it_may(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late", seconds=1.9)
    sandbox.fault("land_past_flight", account="plain-nokeys", seconds=600)
    lose_answer(plain, "plain-main")
    lose_answer(plain, "plain-nokeys")
    assert sandbox.release() == 2
    assert [one["key"] for one in sandbox.refunds()] == [None]
    sandbox.advance(2)
    assert len(sandbox.refunds("plain-nokeys")) == 1
    assert flight_seconds(sandbox, "plain-nokeys") > 2


def test_a_late_landing_behind_a_resend_makes_one_refund_under_a_living_key(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late")
    lose_answer(plain, "plain-main", key="key-1")
    assert plain.refund(key="key-1", marker=MARKER).status_code == 201
    sandbox.advance(10)
    assert [hold["state"] for hold in sandbox.control("GET", "/holds")["holds"]] == ["landed"]
    assert len(sandbox.refunds()) == 1


def test_a_late_landing_behind_a_resend_pays_twice_without_keys(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_late", account="plain-nokeys")
    lose_answer(plain, "plain-nokeys", key="key-1")
    assert plain.refund(key="key-1", marker=MARKER, account="plain-nokeys").status_code == 201
    sandbox.advance(10)
    assert [one["executions"] for one in sandbox.refunds()] == [2, 2]


def test_a_landing_past_the_window_of_its_key_pays_twice(
    sandbox: SandboxProcess, plain: PlainClient
) -> None:
    sandbox.fault("land_past_flight", account="plain-unbounded", seconds=700)
    lose_answer(plain, "plain-unbounded", key="key-1")
    assert plain.refund(key="key-1", marker=MARKER, account="plain-unbounded").status_code == 201
    sandbox.advance(700)
    assert len(sandbox.refunds()) == 2
