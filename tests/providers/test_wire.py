"""One attempt on the wire: connect, look at the clock, write once, and end in time."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from typing import Any

import pytest

from refunds.domain.effects import REFUND_CREATE, Effect, UndeclaredEffect
from refunds.domain.outcome import RawAnswer
from refunds.providers import http
from refunds.providers.base import HttpRequest
from tests.providers.listener import answer, listening, silence
from tests.providers.listener import http as said

LIMIT = 262_144
OF_NO_TABLE = Effect(
    name="void.create", adapter_method="void", started_by="refunds.dispatch", committed_before=()
)


def call(
    url: str, *, total_seconds: float = 5, send_deadline: float | None = None, **more: Any
) -> RawAnswer:
    request = HttpRequest(
        method="POST",
        url=f"{url}/refunds",
        headers={"Idempotency-Key": "the-key"},
        body=b"body",
        effect=REFUND_CREATE,
    )
    return http.call(
        request,
        total_seconds=total_seconds,
        body_bytes_max=LIMIT,
        send_deadline=send_deadline,
        **more,
    )


def test_an_answer_comes_back_as_it_was_said() -> None:
    with listening(answer(said(b'{"id": 1}', status="201 Created"))) as listener:
        raw = call(listener.url)
    assert (raw.status, raw.body, raw.failure, raw.unreadable) == (201, b'{"id": 1}', "", "")
    assert raw.connected_at is not None
    assert raw.first_byte_at is not None
    assert raw.closed_at is not None
    assert raw.connected_at <= raw.first_byte_at <= raw.closed_at
    [request] = listener.requests
    assert request.startswith(b"POST /refunds HTTP/1.1\r\n")
    assert request.endswith(b"\r\n\r\nbody")
    assert b"idempotency-key: the-key" in request.lower()
    assert b"accept-encoding: identity" in request.lower()


# Not sent: the only proof is that no byte was begun


def test_rule_07_past_the_send_deadline_a_standing_connection_gets_no_byte() -> None:
    with listening(answer(said())) as listener:
        raw = call(listener.url, send_deadline=time.monotonic() - 0.001)
    assert listener.requests == [b""]
    assert raw.connected_at is not None
    assert (raw.status, raw.first_byte_at) == (None, None)
    assert "deadline" in raw.failure


def test_rule_07_before_the_send_deadline_the_request_is_written() -> None:
    with listening(answer(said())) as listener:
        raw = call(listener.url, send_deadline=time.monotonic() + 30)
    assert raw.status == 200
    assert len(listener.requests) == 1


def test_a_refused_connection_is_not_sent() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        raw = call(f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert (raw.status, raw.connected_at, raw.first_byte_at) == (None, None, None)
    assert "connection was not made" in raw.failure


def test_a_name_that_does_not_resolve_is_not_sent() -> None:
    raw = call("http://provider.invalid")
    assert (raw.status, raw.first_byte_at) == (None, None)


def test_no_tls_where_tls_was_wanted_is_not_sent() -> None:
    with listening(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as listener:
        raw = call(listener.url.replace("http:", "https:"))
    assert (raw.status, raw.first_byte_at) == (None, None)


def test_an_address_inside_the_house_is_refused_before_a_byte(settings: Any) -> None:
    settings.ALLOW_LOOPBACK_PROVIDERS = False
    with listening(answer(said())) as listener:
        raw = call(listener.url)
    assert listener.requests == [b""]
    assert (raw.status, raw.first_byte_at) == (None, None)


@pytest.mark.parametrize("value", ["a\r\nX: 1", "a\x00b", "ключ"])
def test_a_header_that_is_none_is_not_sent(value: str) -> None:
    with listening(answer(said())) as listener:
        request = HttpRequest(
            method="POST",
            url=listener.url,
            headers={"Idempotency-Key": value},
            effect=REFUND_CREATE,
        )
        raw = http.call(request, total_seconds=5, body_bytes_max=LIMIT)
    assert raw.status is None
    assert b"POST" not in b"".join(listener.requests)


# Once a byte was begun nothing is known


@pytest.mark.parametrize(
    "said_instead",
    [
        b"",
        b"HTTP/1.1 201 Created\r\n",
        said(b"{}", length=100),
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: x\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_an_answer_that_is_not_whole_is_a_failure_after_the_first_byte(said_instead: bytes) -> None:
    with listening(answer(said_instead)) as listener:
        raw = call(listener.url)
    assert len(listener.requests) == 1
    assert raw.status is None
    assert raw.failure
    assert raw.first_byte_at is not None


# Rule 8: one attempt, one connection, one write


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temp", "308 Perm"])
def test_rule_08_a_redirect_is_an_answer_and_is_never_followed(status: str) -> None:
    with listening(answer(said())) as elsewhere:
        redirect = said(status=status, headers=(f"Location: {elsewhere.url}/refunds",))
        with listening(answer(redirect)) as listener:
            raw = call(listener.url)
    assert raw.status == int(status[:3])
    assert raw.headers["location"].startswith(elsewhere.url)
    assert len(listener.requests) == 1
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "play", [answer(), answer(said(status="503 Busy", headers=("Retry-After: 0",))), silence(1)]
)
def test_rule_08_nothing_is_tried_again(play: Any) -> None:
    with listening(play) as listener:
        call(listener.url, total_seconds=0.3)
    assert len(listener.requests) == 1


def test_rule_08_every_call_makes_a_connection_of_its_own() -> None:
    keep = said(headers=("Content-Type: application/json", "Connection: keep-alive"))
    with listening(answer(keep)) as listener:
        for _ in range(3):
            assert call(listener.url).status == 200
    assert len(listener.requests) == 3


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DRIPS = {
    "nothing": silence(10),
    "head": answer(HEAD, *[b"X-Drip: 1\r\n"] * 200, pause_seconds=0.05),
    "status line": answer(*[bytes([each]) for each in HEAD * 4], pause_seconds=0.05),
    "body": answer(HEAD + b"Content-Length: 200\r\n\r\n", *[b" "] * 200, pause_seconds=0.05),
    "chunks": answer(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 200, pause_seconds=0.05
    ),
}


@pytest.mark.parametrize("drip", sorted(DRIPS))
def test_rule_08_the_whole_call_ends_in_time_however_slowly_it_drips(drip: str) -> None:
    """Every single read is quick enough: a time limit per read would never end it."""
    with listening(DRIPS[drip]) as listener:
        began = time.monotonic()
        raw = call(listener.url, total_seconds=0.4)
        took = time.monotonic() - began
    assert raw.status is None
    assert raw.failure == "no end after 0.4 s"
    assert raw.first_byte_at is not None
    assert took < 3
    assert len(listener.requests) == 1


def test_rule_08_a_name_that_resolves_too_late_gets_no_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Resolving has no time limit of its own; the call's own must hold all the same."""
    resolve = socket.getaddrinfo
    woken = threading.Event()

    def slowly(*arguments: Any, **more: Any) -> Any:
        woken.wait(0.3)
        return resolve(*arguments, **more)

    with listening(answer(said())) as listener:
        monkeypatch.setattr(socket, "getaddrinfo", slowly)
        raw = call(listener.url, total_seconds=0.1)
        monkeypatch.undo()
    assert (raw.status, raw.first_byte_at) == (None, None)
    assert listener.requests in ([], [b""])


# What a body may be


def test_a_body_up_to_the_limit_is_whole_and_one_byte_more_is_unreadable() -> None:
    with listening(answer(said(b"x" * LIMIT))) as listener:
        raw = call(listener.url)
    assert (len(raw.body), raw.unreadable) == (LIMIT, "")
    with listening(answer(said(b"x" * (LIMIT + 1)))) as listener:
        raw = call(listener.url)
    assert (raw.status, len(raw.body)) == (200, LIMIT)
    assert "longer than 262144 bytes" in raw.unreadable


def test_a_huge_body_is_not_read_to_its_end() -> None:
    with listening(answer(said(b"", length=10**9), *[b"x" * 65536] * 400)) as listener:
        raw = call(listener.url)
    assert (raw.status, len(raw.body)) == (200, LIMIT)
    assert raw.unreadable


def test_a_compressed_body_is_kept_and_not_read() -> None:
    bomb = gzip.compress(b"0" * 10**7)
    headers = ("Content-Type: application/json", "Content-Encoding: gzip")
    with listening(answer(said(bomb, headers=headers))) as listener:
        raw = call(listener.url)
    assert raw.body == bomb
    assert "compressed" in raw.unreadable


@pytest.mark.parametrize(
    ("method", "effect"),
    [("POST", None), ("DELETE", None), ("POST", OF_NO_TABLE), ("GET", OF_NO_TABLE)],
)
def test_what_no_table_declares_opens_no_connection(method: str, effect: Effect | None) -> None:
    with listening(answer(said())) as listener:
        request = HttpRequest(method=method, url=listener.url, headers={}, effect=effect)
        with pytest.raises(UndeclaredEffect):
            http.call(request, total_seconds=5, body_bytes_max=LIMIT)
    assert listener.requests == []
