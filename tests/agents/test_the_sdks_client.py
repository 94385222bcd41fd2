"""The official SDK's client at /mcp: what stands before the tools refuses so that it can be read."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from refunds import credentials
from refunds.api.mcp import mcp_app
from tests import build
from tests.agents.tool_door import ToolDoor, asked, running
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> ToolDoor:
    build.order()
    return ToolDoor(cast.echo)


async def _propose(key: str, arguments: dict[str, Any]) -> MCPError:
    """What the client raises. Its groups of tasks may wrap it."""
    app = mcp_app()
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        running(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), headers=headers) as http,
    ):
        with pytest.raises((MCPError, BaseExceptionGroup)) as raised:
            async with Client(
                streamable_http_client("http://testserver/mcp", http_client=http)
            ) as client:
                await client.call_tool("propose_refund", arguments)
    [error] = _leaves(raised.value)
    assert isinstance(error, MCPError)
    return error


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


def test_a_body_that_is_too_large_has_our_code(door: ToolDoor) -> None:
    error = async_to_sync(_propose)(door.key, asked(claims={"x": "y" * 70_000}))
    assert error.error.data["code"] == "body_too_large"
    assert "64 KiB" in str(error)


def test_a_key_that_was_revoked_has_our_code(door: ToolDoor) -> None:
    credentials.revoke(door.credential)
    error = async_to_sync(_propose)(door.key, asked())
    assert error.error.data["code"] == "credential_revoked"
    assert "credential_revoked" in str(error)
