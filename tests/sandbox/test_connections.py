"""Silent connections, sleeping processes, and what is received too late."""

import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.provider_process import SandboxProcess
from tests.sandbox.conftest import PlainClient

IDLE_CLOSE_SECONDS = 0.3
REQUEST = (
    b"GET /plain/plain-main/refunds HTTP/1.1\r\nHost: sandbox\r\n"
    b"Authorization: Bearer sandbox-key-plain-main\r\n\r\n"
)


@pytest.fixture(scope="module")
def brisk_sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess(idle_close_seconds=IDLE_CLOSE_SECONDS) as sandbox:
        yield sandbox


@pytest.fixture
def brisk(brisk_sandbox: SandboxProcess) -> SandboxProcess:
    brisk_sandbox.reset()
    return brisk_sandbox


@pytest.fixture
def caller(brisk: SandboxProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", brisk.port), timeout=5) as caller:
        yield caller


def closed_after(caller: socket.socket) -> float:
    """Seconds until the other side ends the connection, having said nothing."""
    started_at = time.monotonic()
    assert caller.recv(1) == b""
    return time.monotonic() - started_at


def test_a_connection_without_a_first_byte_is_closed(
    brisk: SandboxProcess, caller: socket.socket
) -> None:
    assert closed_after(caller) > IDLE_CLOSE_SECONDS / 2
    assert brisk.calls() == []


@pytest.mark.parametrize(
    "half",
    [REQUEST[:20], REQUEST[:-2], REQUEST.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n")],
)
def test_a_request_that_stops_half_way_is_closed_unserved(
    brisk: SandboxProcess, caller: socket.socket, half: bytes
) -> None:
    caller.sendall(half)
    assert closed_after(caller) > IDLE_CLOSE_SECONDS / 2
    assert brisk.calls() == []


def test_a_served_connection_is_closed_when_it_falls_silent(
    brisk: SandboxProcess, caller: socket.socket
) -> None:
    for _ in range(2):
        caller.sendall(REQUEST)
        answer = caller.recv(4096)
        while not answer.endswith(b'"next": null}'):
            rest = caller.recv(4096)
            assert rest, f"closed after {answer!r}"
            answer += rest
        assert answer.startswith(b"HTTP/1.1 200")
    assert closed_after(caller) > IDLE_CLOSE_SECONDS / 2
    assert len(brisk.calls()) == 2


def test_a_caller_that_waits_for_its_answer_is_not_silent(brisk: SandboxProcess) -> None:
    brisk.payment()
    brisk.fault("delay", seconds=3 * IDLE_CLOSE_SECONDS)
    assert PlainClient(brisk).refund().status_code == 201


def test_a_provider_that_slept_past_the_flight_time_executes_nothing(
    brisk: SandboxProcess,
) -> None:
    brisk.payment()
    brisk.configure("plain-main", flight_seconds_max=0.2)
    brisk.payment(account="plain-unbounded")
    plain = PlainClient(brisk)
    plain.timeout = 0.4
    brisk.pause()
    for account in ("plain-main", "plain-unbounded"):
        with pytest.raises(httpx.ReadTimeout):
            plain.refund(account=account)
    brisk.resume()
    give_up_at = time.monotonic() + 5
    while len(brisk.calls()) < 2:
        assert time.monotonic() < give_up_at, "the requests were never read"
    [late] = brisk.calls("plain-main")
    assert (late["answered"], late["faults"]) == ("dropped", ["received_too_late"])
    assert brisk.refunds("plain-main") == []
    assert len(brisk.refunds("plain-unbounded")) == 1
