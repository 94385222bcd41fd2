"""The sandbox in this process: the same door, engine and book, asked without a socket."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, override

import httpx

from sandbox.app import create_app
from sandbox.book import REFUND_AT, Book
from sandbox.provider import Provider
from tests.provider_process import CONTROL_TOKEN, SandboxProcess


class _NoConnection:
    """What the door asks of a connection, where nothing is ever late on the way."""

    def request_age_seconds(self) -> float:
        return 0.0


class _Asked(httpx.BaseTransport):
    """One request at a time, each in a loop of its own."""

    def __init__(self, provider: Provider) -> None:
        self._app = create_app(provider, CONTROL_TOKEN)

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._ask(request))

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        sent: list[dict[str, Any]] = []
        body: list[dict[str, Any]] = [
            {"type": "http.request", "body": request.read(), "more_body": False}
        ]

        async def receive() -> dict[str, Any]:
            return body.pop() if body else {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(dict(message))

        scope = {
            "type": "http",
            "method": request.method,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "state": {"connection": _NoConnection()},
        }
        await self._app(scope, receive, send)
        start = next(each for each in sent if each["type"] == "http.response.start")
        content = b"".join(
            each.get("body", b"") for each in sent if each["type"] == "http.response.body"
        )
        # As a stream, which is what a socket gives: the caller reads it raw.
        return httpx.Response(
            start["status"],
            headers=start["headers"],
            stream=httpx.ByteStream(content),
        )


class SandboxHere(SandboxProcess):
    """A `SandboxProcess` without the process; its book is a file of the same kind."""

    def __init__(self, book: Path) -> None:
        super().__init__(book)
        self._book_here = Book(book)
        self._provider = Provider(self._book_here)
        self.door = _Asked(self._provider)
        self._control = httpx.Client(
            base_url="http://127.0.0.1/_control",
            headers={"X-Control-Token": CONTROL_TOKEN},
            transport=self.door,
        )

    @override
    def start(self, port: int = 0) -> None:
        raise AssertionError("it answers as soon as it is made")

    @override
    def reset(self) -> None:
        """As the command does; there is no listener here that may have been closed."""
        self._provider.holds.abandon()
        self._book_here.reset()

    @override
    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        self._book_here.close()

    def ours(self) -> list[tuple[str, str]]:
        """Marker and status of every refund that came over the API with one."""
        now = self._book_here.now()
        rows = self._book_here.db.execute(
            f"{REFUND_AT} WHERE created_at <= :at AND marker IS NOT NULL", {"at": now}
        )
        return [(str(row["marker"]), str(row["status"])) for row in rows]

    def sent_back(self) -> list[tuple[str, float]]:
        """Marker of every refund of ours that failed, and since when; seconds of the epoch."""
        rows = self._book_here.db.execute(
            """SELECT marker, max(s.at) FROM refunds r JOIN statuses s ON s.refund_id = r.id
               WHERE marker IS NOT NULL AND s.status IN ('failed', 'canceled') AND s.at <= ?
               GROUP BY marker""",
            (self._book_here.now(),),
        )
        return [(str(marker), at / 1_000_000) for marker, at in rows]

    # What it tells by itself, for whoever hands it in

    def notices_due(self) -> list[sqlite3.Row]:
        """The notices that wait to be told, of statuses that have come."""
        return self._book_here.db.execute(
            """SELECT * FROM notices WHERE state IN ('queued', 'held_back') AND status_at <= ?
               ORDER BY seq""",
            (self._book_here.now(),),
        ).fetchall()

    def notice_written(self, row: sqlite3.Row | dict[str, Any]) -> tuple[bytes, tuple[str, str]]:
        """Body and signature header (name, value), as its own sender writes them."""
        profile = self._book_here.profile(row["account"])
        refund = self._book_here.refund(row["refund_id"], row["status_at"])
        assert profile is not None
        assert refund is not None
        return self._provider.sender._written(row, profile, refund)  # type: ignore[arg-type]

    def notice_ended(self, row: sqlite3.Row, state: str) -> None:
        """It was `sent`: the receiver said yes; or it is `lost`."""
        self._provider.sender._end(row, state)
