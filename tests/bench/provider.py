"""A provider that costs next to nothing: `python -m tests.bench.provider PORT LATENCY_MS`

Speaks the little protocol of `dialect`, keeps what it did in memory and honours keys. Prints one
line with its address and ends with its standard input.

    POST /refund  {"op": "...", "amount": 100}, header Idempotency-Key
    GET  /ledger  {"requests", "ops", "money_moves", "duplicates"}
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import Any

_HEAD_END = b"\r\n\r\n"


class Book:
    """What was paid, by operation, and what each key was answered with."""

    def __init__(self) -> None:
        self.moves: Counter[str] = Counter()
        self.by_key: dict[str, bytes] = {}
        self.requests = 0

    def refund(self, key: str, asked: dict[str, Any]) -> bytes:
        self.requests += 1
        if key not in self.by_key:
            op = str(asked["op"])
            self.moves[op] += 1
            ref = f"re_{op}_{self.moves[op]}"
            shown = {"ref": ref, "status": "succeeded", "amount": asked["amount"]}
            self.by_key[key] = json.dumps(shown).encode()
        return self.by_key[key]

    def ledger(self) -> bytes:
        shown = {
            "requests": self.requests,
            "ops": len(self.moves),
            "money_moves": self.moves.total(),
            "duplicates": self.moves.total() - len(self.moves),
        }
        return json.dumps(shown).encode()


class Connection(asyncio.Protocol):
    """One request after the other, answered after the latency."""

    def __init__(self, book: Book, latency_seconds: float) -> None:
        self._book, self._latency_seconds = book, latency_seconds
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, rest = self._heard.partition(_HEAD_END)
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._heard = rest[length:]
        self._serve(lines[0], headers, rest[:length])

    def _serve(self, first_line: str, headers: dict[str, str], body: bytes) -> None:
        path = first_line.split(" ")[1]
        closes = headers.get("connection", "").lower() == "close"
        if path == "/refund":
            loop = asyncio.get_running_loop()
            key = headers.get("idempotency-key", "")
            loop.call_later(
                self._latency_seconds,
                lambda: self._answer(200, self._book.refund(key, json.loads(body)), closes),
            )
        elif path == "/ledger":
            self._answer(200, self._book.ledger(), closes)
        else:
            self._answer(404, b"{}", closes)

    def _answer(self, status: int, body: bytes, closes: bool) -> None:
        kept = "close" if closes else "keep-alive"
        self._transport.write(
            f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: {kept}\r\n\r\n".encode()
            + body
        )
        if closes:
            self._transport.close()


async def _serve(port: int, latency_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    book = Book()
    server = await loop.create_server(
        lambda: Connection(book, latency_seconds), "127.0.0.1", port, backlog=1024
    )
    address = server.sockets[0].getsockname()
    print(f"http://127.0.0.1:{address[1]}", flush=True)
    # Whoever started us is gone when this ends, however it went.
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]) / 1000))
