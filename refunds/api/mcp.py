"""The agents' MCP door: the same room as the REST door, for hosts that speak MCP over HTTP.

Stateless: nothing of a call is kept in this process, so any process may answer the next one.
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from aftersend_mcp import tools, words
from aftersend_mcp.answers import refused, told
from aftersend_mcp.arguments import refusal_of_names
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from starlette.requests import Request
from starlette.types import ASGIApp

from refunds.api import auth, errors, room, waiting
from refunds.api.door import BODY_BYTES_MAX
from refunds.api.mcp_calls import CALLS, Call
from refunds.api.mcp_front import CREDENTIAL, Front
from refunds.domain.errors import Refusal

log = structlog.get_logger(__name__)

PATH: Final = "/mcp"

Context = ServerRequestContext[Any, Request]


def mcp_app() -> ASGIApp:
    """The ASGI application for `PATH` and for the process's lifespan; one per process."""
    server: Server[Any] = Server(
        tools.NAME,
        version=tools.VERSION,
        instructions=words.INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    return Front(
        server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=BODY_BYTES_MAX,
            # `Front` has looked at hosts and origins, by the rules of the pages.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
    )


async def _list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=list(tools.TOOLS))


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    """One call. Every refusal comes back as a tool's error with code, sentence and what to do."""
    assert context.request is not None, "calls come over HTTP"
    call = Call(context.request.scope[CREDENTIAL], params.arguments or {}, params.meta)
    try:
        return await _answer(params.name, call)
    except Refusal as refusal:
        met = await sync_to_async(_existing)(call, refusal)
        return refused(errors.body(refusal, met))
    except (OperationalError, InterfaceError) as error:
        log.error("database_unavailable", tool=params.name, error=type(error).__name__)
        return refused(errors.body(errors.database_unavailable()))
    except Exception as error:
        log.error("unforeseen", tool=params.name, exc_info=error)
        return refused(errors.body(errors.internal()))
    finally:
        await sync_to_async(waiting.hang_up)()


def _existing(call: Call, refusal: Refusal) -> dict[str, Any] | None:
    """The refund that a conflict met; only a conflict is told as a result."""
    return room.existing(call.credential, refusal) if refusal.status == 409 else None


async def _answer(name: str, call: Call) -> CallToolResult:
    await sync_to_async(auth.keep_pace)(call.credential)
    wrong = refusal_of_names(name, call.arguments)
    return refused(wrong) if wrong is not None else told(await CALLS[name](call))
