"""`aftersend-mcp`: the four tools over stdio, for one agent's key.

AFTERSEND_URL and AFTERSEND_TOKEN say where and who; nothing else is read. Standard output is the
protocol's alone, so everything for people goes to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from aftersend_mcp import identity, tools, words
from aftersend_mcp.answers import refused, told
from aftersend_mcp.arguments import refusal_in_address, refusal_of_names
from aftersend_mcp.door import Answer, Door, NoAnswer, NotReached, checked_url

log = logging.getLogger("aftersend_mcp")

Arguments = dict[str, Any]
Meta = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Desk:
    """One run of this program: the door, and the session that its calls belong to."""

    door: Door
    session: str

    async def propose_refund(self, arguments: Arguments, meta: Meta) -> CallToolResult:
        wait_seconds = arguments.get("wait_seconds", tools.WAIT_SECONDS_DEFAULT)
        seconds = wait_seconds if isinstance(wait_seconds, int) else 0
        for session_id, tool_call_id in identity.call_ids(arguments, meta, self.session):
            ids = {"session_id": session_id, "tool_call_id": tool_call_id}
            try:
                answer = await self.door.propose(arguments | ids, wait_seconds=seconds)
            except NoAnswer as lost:
                return _recorded_or_not(lost, ids)
            if not (answer.status == 200 and answer.body.get("state") in identity.LEFT_NOTHING):
                break
        return _answered(answer)

    async def get_refund_status(self, arguments: Arguments, meta: Meta) -> CallToolResult:
        answer = await self.door.status(
            UUID(arguments["operation_id"]),
            wait_seconds=arguments.get("wait_seconds", 0),
            session_id=identity.session_of(arguments, meta, self.session),
        )
        return _answered(answer)

    async def list_order_refunds(self, arguments: Arguments, meta: Meta) -> CallToolResult:
        return _answered(await self.door.order_refunds(arguments["order_ref"]))

    async def withdraw_refund(self, arguments: Arguments, meta: Meta) -> CallToolResult:
        why = {name: value for name, value in arguments.items() if name == "reason"}
        return _answered(await self.door.withdraw(UUID(arguments["operation_id"]), why))


def build(door: Door) -> Server[None]:
    """The MCP server of one run over this door."""
    desk = Desk(door, f"stdio-{uuid4()}")
    calls: dict[str, Callable[[Arguments, Meta], Awaitable[CallToolResult]]] = {
        "propose_refund": desk.propose_refund,
        "get_refund_status": desk.get_refund_status,
        "list_order_refunds": desk.list_order_refunds,
        "withdraw_refund": desk.withdraw_refund,
    }

    async def call(
        context: ServerRequestContext[None], params: CallToolRequestParams
    ) -> CallToolResult:
        arguments = params.arguments or {}
        wrong = refusal_of_names(params.name, arguments)
        if wrong is None and params.name != "propose_refund":
            wrong = refusal_in_address(arguments)
        if wrong is not None:
            return refused(wrong)
        try:
            return await calls[params.name](arguments, params.meta)
        except NotReached as error:
            log.warning("not reached: %s", error)
            return refused(_NOT_REACHED)
        except NoAnswer as error:
            log.warning("no answer: %s", error)
            return refused(_NO_ANSWER)

    async def show(
        context: ServerRequestContext[None], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=list(tools.TOOLS))

    @asynccontextmanager
    async def closing(server: Server[None]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            await door.close()

    return Server(
        tools.NAME,
        version=tools.VERSION,
        instructions=words.INSTRUCTIONS,
        lifespan=closing,
        on_list_tools=show,
        on_call_tool=call,
    )


def main() -> None:
    """Serve until standard input ends; a wrong environment ends the start with a sentence."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    url, token = os.environ.get("AFTERSEND_URL", ""), os.environ.get("AFTERSEND_TOKEN", "")
    try:
        if not url or not token:
            raise ValueError(
                "set AFTERSEND_URL (the address) and AFTERSEND_TOKEN (the agent's key)"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("AFTERSEND_TOKEN is not a key such as as_…: it has other characters")
        door = Door(checked_url(url), token)
    except ValueError as error:
        sys.exit(f"aftersend-mcp: {error}")
    asyncio.run(_serve(door))


async def _serve(door: Door) -> None:
    server = build(door)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _answered(answer: Answer) -> CallToolResult:
    return told(answer.body) if answer.fine else refused(answer.body)


def _recorded_or_not(lost: NoAnswer, ids: dict[str, str]) -> CallToolResult:
    log.warning("no answer to a proposal: %s", lost)
    return refused(
        {
            "code": "no_answer_to_proposal",
            "detail": "The proposal was sent to Aftersend and no answer came. Whether it is"
            " recorded is not known, and so is not known either whether the refund is on its way.",
            "what_to_do": "Call propose_refund again with the same arguments and with"
            f" session_id {ids['session_id']!r} and tool_call_id {ids['tool_call_id']!r}. With the"
            " same ids it can never become a second refund. Do not tell the customer that it"
            " failed.",
            "next_action": "repeat_same_call",
        }
    )


_NOT_REACHED: Final = {
    "code": "aftersend_not_reached",
    "detail": "Aftersend could not be reached. This call was not sent and recorded nothing.",
    "what_to_do": "Repeat the very same call later. It says nothing about refunds that were"
    " proposed before: ask for their status when Aftersend is back.",
    "next_action": "repeat_later",
}
_NO_ANSWER: Final = {
    "code": "no_answer",
    "detail": "The call was sent to Aftersend and no answer came. The refund is as it was, or as"
    " this call would have made it; its state is not known from here.",
    "what_to_do": "Ask with get_refund_status later. Do not propose the refund again.",
    "next_action": "repeat_later",
}
