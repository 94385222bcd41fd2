"""A TCP proxy of our own in front of PostgreSQL: it cuts connections at COMMIT, on order.

`before`: the commit is not passed on; the database ends the transaction. `after`: it is passed on,
the database has committed, and nobody is told. Both look the same to the program.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.storm.points import take
from tests.storm.wire import Reading, is_whole

CHUNK_BYTES = 262_144


_Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Carrier:
    """Carries between a loopback port and PostgreSQL's socket, in a thread of its own.

    While `closed` it takes nobody, and the next byte of whoever it carries ends that line.
    """

    def __init__(self, socket_path: Path, orders: Path) -> None:
        self._socket_path, self._orders = socket_path, orders
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._lines: set[_Line] = set()
        self._closed = False
        self.port = 0

    def start(self) -> None:
        """From here on `port` takes connections, whether or not the database does."""
        self._thread.start()
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.open_at(listening)

    def open_at(self, listening: socket.socket) -> None:
        """Carry whoever comes there, too."""
        self._serve(self._carry, listening)

    def pass_on(self, listening: socket.socket, port: int) -> None:
        """Bring whoever comes there to a loopback port of ours, byte by byte."""
        self._serve(partial(_pass_on, port), listening)

    def stop(self) -> None:
        """End it with all it carries."""
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def close(self) -> None:
        """Cut every line, and take nobody until `reopen`; on return nothing goes through."""
        asyncio.run_coroutine_threadsafe(self._cut_all(), self._loop).result()

    def reopen(self) -> None:
        self._closed = False

    async def _end_all(self) -> None:
        for server in self._servers:
            server.close()
        carrying = asyncio.all_tasks() - {asyncio.current_task()}
        for each in carrying:
            each.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    async def _cut_all(self) -> None:
        self._closed = True
        for line in self._lines:
            line.cut()

    def _serve(self, served: _Served, listening: socket.socket) -> None:
        serving = asyncio.start_server(served, sock=listening, limit=CHUNK_BYTES)
        self._servers.append(asyncio.run_coroutine_threadsafe(serving, self._loop).result())

    async def _carry(self, program: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            if self._closed:
                raise ConnectionRefusedError
            database, to_database = await asyncio.open_unix_connection(self._socket_path)
        except OSError:
            back.close()  # the database is away: so are we
            return
        line = _Line(program, back, database, to_database, self._orders)
        self._lines.add(line)
        try:
            if not self._closed:
                await line.carry()
        finally:
            line.end()
            self._lines.remove(line)


async def _pass_on(port: int, caller: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    ends = [back]
    try:
        server, there = await asyncio.open_connection("127.0.0.1", port)
        ends.append(there)
        await _first_of(_copy(caller, there), _copy(server, back))
    except OSError:
        return  # nobody listens there: whoever came is let go
    finally:
        for end in ends:
            end.close()


async def _first_of(*ways: Coroutine[Any, Any, None]) -> None:
    """Until one of the two ways has ended; the other one is ended with it."""
    going = [asyncio.create_task(each) for each in ways]
    try:
        await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in going:
            each.cancel()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()


class _Line:
    """One connection, both ways."""

    def __init__(
        self,
        program: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        database: asyncio.StreamReader,
        to_database: asyncio.StreamWriter,
        orders: Path,
    ) -> None:
        self._program, self._back = program, back
        self._database, self._to_database = database, to_database
        self._orders = orders
        self._swallow = False

    async def carry(self) -> None:
        await _first_of(self._there(), self._back_again())

    def end(self) -> None:
        """What came until now is still delivered."""
        for end in (self._back, self._to_database):
            end.close()

    def cut(self) -> None:
        """Nothing more goes through, in either direction; both ways end at once."""
        for end in (self._back, self._to_database):
            end.transport.abort()

    async def _there(self) -> None:
        reading = Reading()
        with suppress(OSError):
            while data := await self._program.read(CHUNK_BYTES):
                point = reading.sees(data)
                if point is not None:
                    if take(self._orders, f"{point}.before"):
                        return
                    self._swallow = take(self._orders, f"{point}.after") is not None
                self._to_database.write(data)
                await self._to_database.drain()
                if self._swallow:
                    await asyncio.Event().wait()  # the other way ends this

    async def _back_again(self) -> None:
        with suppress(OSError):
            while data := await self._database.read(CHUNK_BYTES):
                if self._swallow:
                    if is_whole(data):
                        return
                    continue
                self._back.write(data)
                await self._back.drain()
