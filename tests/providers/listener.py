"""A server that says what it is told, byte for byte, and counts who came."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Play = Callable[[socket.socket], None]
_CLOSING_TIME = b"closing time"
_TLS_GREETING = b"\x16"


@dataclass
class Listener:
    """`requests`: the bytes that each connection sent before it was answered."""

    port: int
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(*pieces: bytes, pause_seconds: float = 0.0) -> Play:
    """Say these bytes, with a pause after each, and close."""

    def play(client: socket.socket) -> None:
        for piece in pieces:
            client.sendall(piece)
            if pause_seconds:
                time.sleep(pause_seconds)

    return play


def silence(seconds: float) -> Play:
    def play(client: socket.socket) -> None:
        client.settimeout(seconds)
        client.recv(1)

    return play


def http(
    body: bytes = b"{}",
    *,
    status: str = "200 OK",
    headers: tuple[str, ...] = ("Content-Type: application/json",),
    length: int | None = None,
) -> bytes:
    """A whole HTTP answer; `length` may lie."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*head, *headers, "", ""]).encode() + body


@contextmanager
def listening(play: Play) -> Iterator[Listener]:
    """Serve one connection after the other in the same way, until the block ends."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        listener = Listener(port=door.getsockname()[1])
        thread = threading.Thread(target=_serve, args=(door, listener, play))
        thread.start()
        try:
            yield listener
        finally:
            # Behind everybody who came before: nobody is missed.
            with socket.create_connection(("127.0.0.1", listener.port)) as last:
                last.sendall(_CLOSING_TIME)
            thread.join()


def _serve(door: socket.socket, listener: Listener, play: Play) -> None:
    while True:
        client, _ = door.accept()
        with client:
            request = _request(client)
            if request == _CLOSING_TIME:
                return
            listener.requests.append(request)
            try:
                play(client)
            except OSError:
                continue  # the caller had enough; that is what these tests are about


def _request(client: socket.socket) -> bytes:
    """All of one request, or what came before the caller closed."""
    received = b""
    while b"\r\n\r\n" not in received:
        try:
            piece = client.recv(65536)
        except OSError:
            return received
        received += piece
        if not piece or received.startswith((_CLOSING_TIME, _TLS_GREETING)):
            return received
    head, _, body = received.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            while len(body) < int(value):
                body += client.recv(65536)
    return head + b"\r\n\r\n" + body
