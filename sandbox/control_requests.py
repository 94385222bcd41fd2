"""Reads commands of the control API and guards them with its token."""

import json
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Answering = Callable[[Request], Awaitable[Response]]


class ControlError(Exception):
    """A command that cannot be carried out; the message says what to send instead."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def guarded(answering: Answering, token: str) -> Answering:
    """The command behind the control token, its refusals as JSON."""

    async def answer(request: Request) -> Response:
        presented = request.headers.get("x-control-token", "")
        if not compare_digest(presented.encode(), token.encode()):
            return _error("token_wrong", "send the control token as X-Control-Token", 401)
        try:
            return await answering(request)
        except ControlError as wrong:
            return _error(wrong.code, str(wrong), wrong.status)

    return answer


def _error(code: str, message: str, status: int) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)


async def read_fields(request: Request, *known: str) -> dict[str, Any]:
    """The JSON object sent, an empty body being an empty one."""
    try:
        fields = json.loads(await request.body() or b"{}")
    except ValueError as broken:
        raise ControlError("body_invalid", "send a JSON object") from broken
    if not isinstance(fields, dict):
        raise ControlError("body_invalid", "send a JSON object")
    unknown = sorted(set(fields) - set(known))
    if known and unknown:
        raise ControlError("body_invalid", f"unknown field {unknown[0]!r}; use {', '.join(known)}")
    return fields


def required_text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise ControlError("field_missing", f"{name} is required")
    return value
