"""A REST door that says what it is told to say, or nothing: for what a network does to a client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOST = "lost"  # the request is read whole, then the connection is closed


@dataclass
class Script:
    """What is answered, one after the other, and what was received: method, path, body text.

    `retry_after` is sent with each answer, where there is one.
    """

    answers: list[str | tuple[int, bytes]] = field(default_factory=list)
    retry_after: str = ""
    received: list[tuple[str, str, str]] = field(default_factory=list)
    address: str = ""

    def then(self, status: int, body: dict[str, Any]) -> None:
        self.answers.append((status, json.dumps(body).encode()))

    def ids(self) -> list[tuple[str, str]]:
        """The (session_id, tool_call_id) of every proposal received."""
        bodies = [json.loads(body) for _, path, body in self.received if path.endswith("/refunds")]
        return [(body["session_id"], body["tool_call_id"]) for body in bodies]


@contextmanager
def scripted() -> Iterator[Script]:
    """Serve a script on a free port of this machine."""
    script = Script()

    class Answering(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length).decode()
            script.received.append((self.command, self.path, body))
            answer = script.answers.pop(0)
            if isinstance(answer, str):
                self.close_connection = True
                return
            status, content = answer
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if script.retry_after:
                self.send_header("Retry-After", script.retry_after)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            """Nothing: the script keeps what was received."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    script.address = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
