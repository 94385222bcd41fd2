"""A killed sandbox forgets nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient

MARKER = "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"


@pytest.fixture
def mortal() -> Iterator[SandboxProcess]:
    with SandboxProcess() as sandbox:
        sandbox.payment()
        yield sandbox


@pytest.fixture
def plain(mortal: SandboxProcess) -> PlainClient:
    return PlainClient(mortal)


def test_book_keys_calls_faults_accounts_and_clock_outlive_a_kill(
    mortal: SandboxProcess, plain: PlainClient
) -> None:
    mortal.advance(3600)
    mortal.configure("plain-main", api_key="rotated")
    made = plain.refund(key="key-1", marker=MARKER, api_key="rotated").json()
    mortal.fault("drop_before_commit", after=1)
    before, calls, port = mortal.book(), mortal.calls(), mortal.port

    mortal.kill()
    mortal.restart()

    assert mortal.port == port
    after = mortal.book()
    assert after["payments"] == before["payments"]
    assert after["now"] > before["now"]
    assert mortal.calls() == calls
    assert plain.refund(key="key-1", marker=MARKER, api_key="rotated").json() == made
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(api_key="rotated")
    assert len(mortal.refunds()) == 1


def test_a_refund_whose_answer_was_never_sent_outlives_a_kill_with_its_key(
    mortal: SandboxProcess, plain: PlainClient
) -> None:
    mortal.fault("hold")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(plain.refund, key="key-1", marker=MARKER)
        mortal.wait_for_hold()
        mortal.kill()
        with pytest.raises(httpx.RemoteProtocolError):
            asked.result(5)
    mortal.restart()
    [booked] = mortal.refunds()
    assert plain.refund(key="key-1", marker=MARKER).json()["id"] == booked["id"]
    assert mortal.waiting_holds() == []


def test_what_was_to_land_late_lands_after_a_kill(
    mortal: SandboxProcess, plain: PlainClient
) -> None:
    mortal.fault("land_past_flight", seconds=30)
    with pytest.raises(httpx.RemoteProtocolError):
        plain.refund(marker=MARKER)
    mortal.kill()
    mortal.restart()
    assert mortal.refunds() == []
    mortal.advance(30)
    assert [one["aftersend_operation"] for one in mortal.refunds()] == [MARKER]


def test_a_polite_stop_lets_go_of_a_held_answer(mortal: SandboxProcess, plain: PlainClient) -> None:
    mortal.fault("hold")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(plain.refund)
        mortal.wait_for_hold()
        mortal.restart()
        with pytest.raises(httpx.RemoteProtocolError):
            asked.result(5)
    assert len(mortal.refunds()) == 1
    assert [call["answered"] for call in mortal.calls()] == ["dropped"]
