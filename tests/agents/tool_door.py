"""The MCP door in this process: raw messages in, what came back out."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from aftersend_mcp import tools
from asgiref.sync import async_to_sync
from jsonschema import Draft202012Validator
from starlette.types import ASGIApp, Message

from refunds import credentials
from refunds.api.mcp import mcp_app
from refunds.models import Agent

_ids = itertools.count(1)
OUTPUTS = {tool.name: tool.output_schema for tool in tools.TOOLS}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool gave back; a result has been checked against the declared output."""

    is_error: bool
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """The code of a refusal, which also has a sentence and what to do, and nothing of pydantic."""
        assert self.is_error, self
        assert self.body["detail"], self
        assert self.body["what_to_do"], self
        assert "pydantic" not in json.dumps(self.body)
        assert "http" not in self.body["detail"]
        return str(self.body["code"])


def problem(response: httpx2.Response) -> dict[str, Any]:
    """What stands before the tools refused: the problem within an error of JSON-RPC."""
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", None)
    found: dict[str, Any] = answer["error"]["data"]
    assert answer["error"]["message"].startswith(f"{found['code']}: ")
    assert found["what_to_do"] in answer["error"]["message"]
    return found


class ToolDoor:
    """One agent with one key, calling tools over HTTP without a session."""

    def __init__(self, agent: Agent, *scopes: str) -> None:
        self.agent = agent
        scopes = scopes or ("refund:propose", "refund:read")
        self.credential, self.key = credentials.mint(agent, scopes=list(scopes))

    def post(
        self, content: str | bytes, *, method: str = "POST", **headers: str
    ) -> httpx2.Response:
        """One request to /mcp with these very bytes."""
        sent = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return async_to_sync(_send)(method, content, sent | named)

    def send(self, name: str, arguments: str, meta: dict[str, Any] | None = None) -> ToolAnswer:
        """One tool call whose arguments are this JSON text."""
        with_meta = f', "_meta": {json.dumps(meta)}' if meta else ""
        response = self.post(
            f'{{"jsonrpc": "2.0", "id": {next(_ids)}, "method": "tools/call", "params":'
            f' {{"name": {json.dumps(name)}, "arguments": {arguments}{with_meta}}}}}'
        )
        assert response.status_code == 200, response.text
        result = response.json()["result"]
        [content] = result["content"]
        body = json.loads(content["text"])
        if result["isError"]:
            assert "structuredContent" not in result
        else:
            assert body == result["structuredContent"]
            Draft202012Validator(OUTPUTS[name] or {}).validate(body)
        return ToolAnswer(result["isError"], body)

    def call(self, name: str, meta: dict[str, Any] | None = None, **arguments: Any) -> ToolAnswer:
        return self.send(name, json.dumps(arguments), meta)

    def propose(self, meta: dict[str, Any] | None = None, **changes: Any) -> ToolAnswer:
        """79.00 USD of order 4821, with these changes; `...` leaves an argument out."""
        return self.call("propose_refund", meta, **asked(**changes))


def asked(**changes: Any) -> dict[str, Any]:
    """The arguments of a proposal as a model sends them: no ids of its own."""
    fields: dict[str, Any] = {
        "requested_by": {"kind": "customer", "ref": "cus_204"},
        "order_ref": "4821",
        "amount": "79.00",
        "currency": "USD",
        "reason_code": "damaged_item",
        "reason_text": "headphones arrived broken",
        "wait_seconds": 0,
    } | changes
    return {name: value for name, value in fields.items() if value is not ...}


async def _send(method: str, content: str | bytes, headers: dict[str, str]) -> httpx2.Response:
    app = mcp_app()
    async with running(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            return await http.request(method, "/mcp", content=content, headers=headers)


@asynccontextmanager
async def running(app: ASGIApp) -> AsyncIterator[None]:
    """The application's lifespan around the block, as a server drives it."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()

    async def live() -> None:
        await app({"type": "lifespan"}, to_app.get, from_app.put)

    life = asyncio.create_task(live())
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
        await life
