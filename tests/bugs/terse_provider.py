"""A provider that speaks the plain dialect but leaves one field out of all that it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class _Terse(BaseHTTPRequestHandler):
    made: list[dict[str, Any]]
    lacks: str

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        del asked[self.lacks]
        self.made.append({"id": f"rf_{len(self.made) + 1}", "status": "succeeded", **asked})
        self._answer(201, self.made[-1])

    def do_GET(self) -> None:
        self._answer(200, {"items": self.made, "next": None})

    def _answer(self, status: int, table: dict[str, Any]) -> None:
        body = json.dumps(table).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are no news in a test."""


@contextmanager
def listening(lacks: str = "amount_minor") -> Iterator[str]:
    """One such provider on a free port; yields its base URL."""
    left_out = lacks

    class Terse(_Terse):
        made: list[dict[str, Any]] = []
        lacks = left_out

    with ThreadingHTTPServer(("127.0.0.1", 0), Terse) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
