"""A TCP proxy of our own in front of PostgreSQL: it cuts connections at COMMIT, on order.

`before`: the commit is not passed on; the database ends the transaction. `after`: it is passed on,
the database has committed, and nobody is told. Both look the same to the program.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

from tests.storm.points import take
from tests.storm.wire import Reading, is_whole

CHUNK_BYTES = 262_144


class Carrier:
    """Carries between a loopback port and PostgreSQL's socket, in a thread of its own."""

    def __init__(self, socket_path: Path, orders: Path) -> None:
        self._socket_path, self._orders = socket_path, orders
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def start(self) -> None:
        """From here on `port` takes connections, whether or not the database does."""
        self._thread.start()
        serving = asyncio.start_server(self._carry, "127.0.0.1", 0, limit=CHUNK_BYTES)
        server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.port = server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """End it with all it carries."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _carry(self, program: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            database, to_database = await asyncio.open_unix_connection(self._socket_path)
        except OSError:
            back.close()  # the database is away: so are we
            return
        line = _Line(program, back, database, to_database, self._orders)
        await line.carry()


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
        ways = [asyncio.create_task(self._there()), asyncio.create_task(self._back_again())]
        with suppress(OSError):
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (self._back, self._to_database):
            end.close()

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
