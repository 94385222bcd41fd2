"""How an answer leaves the house: whole, spoiled, in drops, or not at all."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sandbox.connection import Connection
from sandbox.dialects import Dialect
from sandbox.operations import Answer, Twists

_HUGE_BYTES = 1024 * 1024
_DRIP_SECONDS = 0.05
_PAGE = b"<!doctype html><html><body><h1>Welcome</h1></body></html>"


def whole(answer: Answer) -> Response:
    response = Response(answer.body, answer.status, media_type=answer.content_type)
    for name, value in answer.headers:
        response.headers[name] = value
    return response


class Silence:
    """No answer: the connection ends, politely or with a reset."""

    def __init__(self, connection: Connection, *, reset: bool = False) -> None:
        self._connection = connection
        self._reset = reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._reset:
            self._connection.reset()
        else:
            self._connection.close()
        await _gone(receive)


class Pieces:
    """Raw bytes in pieces with a pause after each, then the end of the connection."""

    def __init__(self, connection: Connection, pieces: list[bytes], pause: float) -> None:
        self._connection = connection
        self._pieces = pieces
        self._pause = pause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_gone(receive))
        for piece in self._pieces:
            self._connection.write(piece)
            await asyncio.wait([gone], timeout=self._pause)
            if gone.done():
                break
        self._connection.close()
        await gone


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def given(
    answer: Answer, twists: Twists, dialect: Dialect, connection: Connection, path: str
) -> Response | Silence | Pieces:
    """The answer as the faults of this request let it out; `path` is the request's own."""
    if "drop_after_commit" in twists:
        return Silence(connection)
    if "truncated" in twists:
        written = _written(answer)
        return Pieces(connection, [written[: len(written) - (len(answer.body) + 1) // 2]], 0)
    drip = twists.options("drip")
    if drip is not None:
        written = _written(answer)
        start = 0 if drip.get("part") == "all" else len(written) - len(answer.body)
        drops = [written[at : at + 1] for at in range(start, len(written))]
        pieces = [written[:start], *drops] if start else drops
        return Pieces(connection, pieces, drip.get("seconds", _DRIP_SECONDS))
    return whole(_spoiled(answer, twists, dialect, path))


def _written(answer: Answer) -> bytes:
    head = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head += [
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    ]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + answer.body


def _spoiled(answer: Answer, twists: Twists, dialect: Dialect, path: str) -> Answer:
    for fired in twists.fired:
        options = fired.options
        match fired.fault:
            case "html_200":
                return replace(answer, status=200, body=_PAGE, content_type="text/html")
            case "bad_json":
                return replace(answer, body=answer.body[:-1] + b",,")
            case "huge_body":
                padding = b" " * options.get("bytes", _HUGE_BYTES)
                return replace(answer, body=answer.body[:-1] + padding + answer.body[-1:])
            case "wrong_amount":
                return _with_wrong_amount(answer, dialect.amount_field, options.get("amount_minor"))
            case "wrong_currency":
                return _with_currency(answer, options.get("currency", "XTS"))
            case "redirect":
                target = options.get("location") or _own_address(answer, path)
                headers = (*answer.headers, ("Location", target))
                return replace(answer, status=options.get("status", 303), headers=headers)
    return answer


def _with_wrong_amount(answer: Answer, field: str, amount_minor: int | None) -> Answer:
    """Another amount in the answer than in the book: one more, if none is given."""
    return _rewritten(
        answer,
        lambda refund: {field: refund[field] + 1 if amount_minor is None else amount_minor},
    )


def _with_currency(answer: Answer, currency: str) -> Answer:
    return _rewritten(answer, lambda refund: {"currency": currency})


def _rewritten(answer: Answer, changes: Callable[[dict[str, Any]], dict[str, Any]]) -> Answer:
    """The answer with changes to every refund that it shows; an error stays as it is."""
    content = json.loads(answer.body)
    if "error" not in content:
        for refund in content.get("items", content.get("data", [content])):
            refund |= changes(refund)
    return replace(answer, body=json.dumps(content).encode())


def _own_address(answer: Answer, path: str) -> str:
    """Where the refund of this answer can be read, which makes following it look right."""
    refund_id = json.loads(answer.body).get("id")
    return f"{path}/{refund_id}" if refund_id and not path.endswith(refund_id) else path
