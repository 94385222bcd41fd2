"""Three kinds of client as agents' developers have them, none of which knows this project."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

CALL_SECONDS_MAX = 40
GENERATED = "generated_aftersend"
NDJSON = "application/x-ndjson"


class Session(Protocol):
    """One conversation of one agent."""

    def propose(self, fields: dict[str, Any], *, call_id: str) -> dict[str, Any]:
        """The result; raises AssertionError for everything that is no result."""
        ...

    def status(self, operation_id: str, *, wait_seconds: int) -> dict[str, Any]: ...


Kind = Callable[[str, str], AbstractContextManager[Session]]


class McpSession:
    """The official SDK's client; `call_id` goes where hosts put it."""

    def __init__(self, portal: BlockingPortal, client: Client, session_id: str) -> None:
        self._portal, self._client, self._session_id = portal, client, session_id

    def propose(self, fields: dict[str, Any], *, call_id: str) -> dict[str, Any]:
        meta = {"claudecode/toolUseId": call_id, "openai/session": self._session_id}
        return self._call("propose_refund", fields, meta)

    def status(self, operation_id: str, *, wait_seconds: int) -> dict[str, Any]:
        asked = {"operation_id": operation_id, "wait_seconds": wait_seconds}
        return self._call("get_refund_status", asked, {"openai/session": self._session_id})

    def _call(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        async def call() -> Any:
            return await self._client.call_tool(name, arguments, meta=meta)  # type: ignore[arg-type]

        result = self._portal.call(call)
        assert not result.is_error, result.content
        found: dict[str, Any] = result.structured_content
        return found


def over_http(address: str) -> Kind:
    """The SDK's client at /mcp."""

    @contextmanager
    def open_session(key: str, session_id: str) -> Iterator[Session]:
        with start_blocking_portal() as portal:
            http = portal.call(_http_client, key)
            client = Client(streamable_http_client(f"{address}/mcp", http_client=http))
            with portal.wrap_async_context_manager(client):
                yield McpSession(portal, client, session_id)
            portal.call(http.aclose)

    return open_session


async def _http_client(key: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(headers=headers, timeout=CALL_SECONDS_MAX, trust_env=False)


def over_stdio(address: str) -> Kind:
    """The SDK's client, which starts `aftersend-mcp` as an agent's host does."""
    command = Path(sys.executable).parent / "aftersend-mcp"

    @contextmanager
    def open_session(key: str, session_id: str) -> Iterator[Session]:
        environment = {"AFTERSEND_URL": address, "AFTERSEND_TOKEN": key, "NO_PROXY": "127.0.0.1"}
        started = StdioServerParameters(command=str(command), env=environment, cwd="/")
        with start_blocking_portal() as portal:
            client = Client(started)
            with portal.wrap_async_context_manager(client):
                yield McpSession(portal, client, session_id)

    return open_session


class GeneratedSession:
    """A client that a generator wrote from our OpenAPI document."""

    def __init__(self, client: Any, session_id: str) -> None:
        self._client, self._session_id = client, session_id

    def propose(self, fields: dict[str, Any], *, call_id: str) -> dict[str, Any]:
        ids = {"session_id": self._session_id, "tool_call_id": call_id}
        proposal = _generated("models").ProposalIn.from_dict(fields | ids)
        # Its own parsing must take both the results and the conflict, which is a problem document.
        return self._answer("propose_refund", (200, 201, 409), body=proposal)

    def status(self, operation_id: str, *, wait_seconds: int) -> dict[str, Any]:
        asked = {"operation_id": operation_id, "wait_seconds": wait_seconds}
        return self._answer("get_refund", (200,), **asked, session_id=self._session_id)

    def _answer(self, name: str, statuses: tuple[int, ...], **asked: Any) -> dict[str, Any]:
        response = _generated(f"api.refunds.{name}").sync_detailed(client=self._client, **asked)
        assert response.status_code in statuses, response
        found: dict[str, Any] = json.loads(response.content)
        parsed = response.parsed.to_dict()
        assert parsed["operation_id"] == found["operation_id"]
        return found


def generated(address: str, folder: Path) -> Kind:
    """A REST client, generated from the installation's own description into this folder."""
    description = folder / "openapi.json"
    description.write_bytes(httpx.get(f"{address}/api/v1/openapi.json").raise_for_status().content)
    # A feed of lines is nothing that this generator knows; as bytes it is.
    wishes = {"post_hooks": [], "content_type_overrides": {NDJSON: "application/octet-stream"}}
    (folder / "generator.json").write_text(json.dumps(wishes))
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", str(description), "--config", str(folder / "generator.json")),
            *("--output-path", str(folder / GENERATED), "--fail-on-warning"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))

    @contextmanager
    def open_session(key: str, session_id: str) -> Iterator[Session]:
        client = _generated("client").AuthenticatedClient(
            base_url=address, token=key, timeout=httpx.Timeout(CALL_SECONDS_MAX)
        )
        with client:
            yield GeneratedSession(client, session_id)

    return open_session


def _generated(module: str) -> Any:
    return importlib.import_module(f"{GENERATED}.{module}")
