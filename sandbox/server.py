"""The server process: one loopback port, whose door can be shut for a while."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import override

import uvicorn
from starlette.types import ASGIApp

from sandbox.connection import Connection

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
_BIND_PATIENCE_SECONDS = 5
_BACKLOG = 2048


def bind(host: str, port: int) -> socket.socket:
    """A bound socket, not yet listening; OSError when the port stays taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + _BIND_PATIENCE_SECONDS
    while True:
        # Naming the protocol is what makes asyncio turn Nagle's delays off.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError:
            bound.close()
            # Between two of our own lives a passing connection may hold the port for a moment.
            if port == 0 or time.monotonic() >= deadline:
                raise
            time.sleep(0.05)
        else:
            return bound


class Server(uvicorn.Server):
    """uvicorn that says when it is ready and can refuse connections on command."""

    def __init__(self, app: ASGIApp, host: str, port: int, *, on_stop: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="on",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._socket = bind(host, port)
        self._host = host
        self._port: int = self._socket.getsockname()[1]
        self._on_stop = on_stop
        self._reopening: asyncio.Task[None] | None = None

    def serve_until_stopped(self) -> None:
        self.run(sockets=[self._socket])

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        shown = f"[{self._host}]" if ":" in self._host else self._host
        print(f"sandbox listening on http://{shown}:{self._port}", flush=True)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)

    async def refuse(self, seconds: float) -> None:
        """Refuse new connections for some real seconds; those that stand stay."""
        if self._reopening is not None:
            self._reopening.cancel()
        for server in self.servers:
            server.close()
        self._reopening = asyncio.create_task(self._reopen(seconds))

    async def accept_again(self) -> None:
        """End a refusal early."""
        if self._reopening is not None and not self._reopening.done():
            self._reopening.cancel()
            await self._reopen(0)

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        bound = await asyncio.to_thread(bind, self._host, self._port)
        loop = asyncio.get_running_loop()
        self.servers = [await loop.create_server(self._connection, sock=bound, backlog=_BACKLOG)]

    def _connection(self) -> Connection:
        return Connection(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
