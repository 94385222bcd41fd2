"""In front of the MCP server: whose host, whose key, how large, and JSON that says one thing.

Refusals here are errors of HTTP, and of JSON-RPC within: a client's own words for HTTP errors would
hide them. What is wrong with one tool call is told by the tool instead, where a model can read it.
"""

from __future__ import annotations

from typing import Final

import structlog
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http.request import split_domain_port, validate_host
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refunds import credentials
from refunds.api import errors, waiting
from refunds.api.auth import bearer_of
from refunds.api.door import BODY_BYTES_MAX
from refunds.api.parsing import read_json
from refunds.domain.errors import Refusal
from refunds.models import Credential

log = structlog.get_logger(__name__)

# Where the credential of a request stands in its ASGI scope.
CREDENTIAL: Final = "aftersend.credential"


class Front:
    """Lets a request through to the MCP server, with its credential in the scope, or refuses it."""

    def __init__(self, server: ASGIApp) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._server(scope, receive, send)
            return
        # Synchronous parts of one request share a thread, those of others run beside them.
        async with ThreadSensitiveContext():
            try:
                body = await _admit(scope, receive)
            except Refusal as refusal:
                await _problem(refusal)(scope, receive, send)
            except (OperationalError, InterfaceError) as error:
                log.error("database_unavailable", path=scope["path"], error=type(error).__name__)
                await _problem(errors.database_unavailable())(scope, receive, send)
            else:
                await self._server(scope, _replayed(body, receive), send)
            finally:
                await sync_to_async(waiting.hang_up)()


async def _admit(scope: Scope, receive: Receive) -> bytes:
    """The body of a request that may go on. Raises Refusal."""
    headers = Headers(scope=scope)
    _require_our_host(headers)
    _require_tls(scope, headers)
    if scope["method"] != "POST":
        raise errors.method_not_allowed("POST")
    scope[CREDENTIAL] = await sync_to_async(_credential)(headers.get("authorization", ""))
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise errors.not_json("application/json")
    body = await _body(headers, receive)
    _require_plain_json(body)
    return body


def _require_our_host(headers: Headers) -> None:
    """Against pages of other sites that reach this machine under a name of theirs."""
    host, _ = split_domain_port(headers.get("host", ""))
    if not (host and validate_host(host, settings.ALLOWED_HOSTS)):
        raise Refusal(
            "host_unknown",
            "This installation does not answer under that name.",
            status=421,
            what_to_do="Use the installation's own address.",
        )
    origin = headers.get("origin")
    if origin is not None and origin not in settings.CSRF_TRUSTED_ORIGINS:
        raise Refusal(
            "origin_unknown",
            "A page of another site may not call tools.",
            status=403,
            what_to_do="Call from a program, which sends no Origin header.",
        )


def _require_tls(scope: Scope, headers: Headers) -> None:
    """Where pages are moved to https, a tool call in the clear is refused: its key was read."""
    forwarded = headers.get("x-forwarded-proto", scope["scheme"])
    if settings.SECURE_SSL_REDIRECT and forwarded != "https":
        raise Refusal(
            "https_needed",
            "The key of this call came in the clear.",
            status=403,
            what_to_do="Use the https address, and have the key rotated.",
        )


def _credential(header: str) -> Credential:
    return credentials.authenticate(bearer_of(header))


async def _body(headers: Headers, receive: Receive) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > BODY_BYTES_MAX:
        raise errors.too_large()
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)  # the caller has gone; what it left is no JSON
        body += message.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            raise errors.too_large()
        if not message.get("more_body", False):
            return bytes(body)


def _require_plain_json(body: bytes) -> None:
    """Raises Refusal 400: not JSON, nested too deep, or a name twice, of which one would win."""
    try:
        read_json(body)
    except Refusal as refusal:
        if refusal.status == 400:
            raise
        # A value that a tool does not take: the tool says so.


def _replayed(body: bytes, receive: Receive) -> Receive:
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _problem(refusal: Refusal) -> Response:
    """The REST door's problem as an error of JSON-RPC, which clients of MCP pass on.

    Its message has the code and what to do, its `data` is the problem. Its id is null: the
    request's own is not read before the request is let in.
    """
    problem = errors.problem(refusal)
    error = {
        "code": PARSE_ERROR if refusal.code == "malformed_json" else INVALID_REQUEST,
        "message": f"{refusal.code}: {refusal.detail} {refusal.what_to_do}",
        "data": errors.body(refusal),
    }
    headers = {
        name: problem[name] for name in ("WWW-Authenticate", "Retry-After") if name in problem
    }
    if refusal.status == 405:
        headers["Allow"] = "POST"
    return JSONResponse(
        {"jsonrpc": "2.0", "id": None, "error": error},
        status_code=refusal.status,
        headers=headers | {"Cache-Control": "no-store"},
    )
