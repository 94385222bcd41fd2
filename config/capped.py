"""An application whose requests may not be larger than so many bytes, counted as they come.

Django keeps the whole body of a request before a view is asked, however long it is.
"""

from __future__ import annotations

from typing import Any

_REFUSAL = b'{"code": "too_large", "detail": "A notice has at most %d bytes."}'


class Capped:
    """Reads the body itself, answers 413 at the first byte too many, or hands it on whole."""

    def __init__(self, application: Any, bytes_max: int) -> None:
        self._application = application
        self._bytes_max = bytes_max

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pieces: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the caller is gone
            piece = message.get("body", b"")
            size += len(piece)
            if size > self._bytes_max:
                await self._refuse(send)
                return
            pieces.append(piece)
            more = message.get("more_body", False)
        whole: list[Any] = [{"type": "http.request", "body": b"".join(pieces), "more_body": False}]

        async def replay() -> Any:
            return whole.pop() if whole else await receive()

        await self._application(scope, replay, send)

    async def _refuse(self, send: Any) -> None:
        body = _REFUSAL % self._bytes_max
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
