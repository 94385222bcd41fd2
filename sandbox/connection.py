"""Connections: closed when silent, broken on command.

uvicorn waits for ever for the first byte of a new connection. This provider promises I: a
sender that slept after connecting finds its connection closed, so nothing lands later than
I after the connect plus the account's D.
"""

import asyncio
import socket
import struct
import sys
from typing import Any, ClassVar, override

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONTROL_PREFIX = "/_control"
_CONTROL_KEEP_ALIVE_SECONDS = 60
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
# Linux: milliseconds since the last segment with content came in, within struct tcp_info.
_LAST_RECEIVED_OFFSET = 52


class Connection(H11Protocol):
    """One TCP connection; the application finds it in the request's state as `connection`."""

    idle_close_seconds: ClassVar[float] = 1.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app_state = {**self.app_state, "connection": self}
        self._silence: asyncio.TimerHandle | None = None
        self._first_byte_at: float | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._first_byte_at is None:
            self._first_byte_at = self.loop.time()
            self._arm()
        super().data_received(data)
        if self.conn.their_state is not h11.SEND_BODY and self.conn.their_state is not h11.IDLE:
            self._disarm()

    @override
    def on_response_complete(self) -> None:
        self._first_byte_at = None
        control = self.scope["path"].startswith(CONTROL_PREFIX)
        wait = _CONTROL_KEEP_ALIVE_SECONDS if control else self.idle_close_seconds
        # Declared as whole seconds, but only ever passed on to call_later.
        self.timeout_keep_alive = wait  # type: ignore[assignment]
        super().on_response_complete()

    def _arm(self) -> None:
        self._disarm()
        self._silence = self.loop.call_later(self.idle_close_seconds, self.close)

    def _disarm(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def request_age_seconds(self) -> float:
        """How long ago this request came in, also when this process was stopped meanwhile."""
        started = self._first_byte_at
        age = 0.0 if started is None else self.loop.time() - started
        if sys.platform == "linux":
            size = _LAST_RECEIVED_OFFSET + 4
            connected = self.transport.get_extra_info("socket")
            measured = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
            waited_ms: int = struct.unpack_from("=I", measured, _LAST_RECEIVED_OFFSET)[0]
            age = max(age, waited_ms / 1000)
        return age

    def close(self) -> None:
        """Close without an answer; the caller sees the end of the stream."""
        self.transport.close()

    def reset(self) -> None:
        """Cut at once; the caller sees a reset."""
        connected = self.transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()

    def write(self, content: bytes) -> None:
        """Bytes as they are, past HTTP."""
        self.transport.write(content)
