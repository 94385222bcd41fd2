"""The REST door, called once per request: nothing here repeats a request by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit
from uuid import UUID

import httpx2

CONNECT_SECONDS_MAX: Final = 5
# Beyond the seconds that the caller asked the server to wait.
ANSWER_SECONDS_MAX: Final = 20
# A gateway's words for "the server behind me did not answer": the request may have arrived.
GATEWAY_STATUSES: Final = frozenset({502, 504})


class NotReached(Exception):
    """No connection came about: the request never left, nothing was recorded by it."""


class NoAnswer(Exception):
    """The request left and no answer that can be read came: it may have been recorded."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the REST door said."""

    status: int
    body: dict[str, Any]

    @property
    def fine(self) -> bool:
        return self.status < 400


class Door:
    """One installation with one key. `url` is its address, such as https://refunds.example."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx2.AsyncClient(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            follow_redirects=False,
        )

    async def propose(self, proposal: Mapping[str, Any], *, wait_seconds: float) -> Answer:
        """POST a proposal; 201 new, 200 known. Raises NotReached or NoAnswer."""
        return await self._call("POST", "/refunds", proposal, seconds=wait_seconds)

    async def status(self, operation_id: UUID, *, wait_seconds: int, session_id: str) -> Answer:
        """Where a refund stands. Raises NotReached or NoAnswer."""
        query = {"wait_seconds": str(wait_seconds), "session_id": session_id}
        return await self._call(
            "GET", f"/refunds/{operation_id}", query=query, seconds=wait_seconds
        )

    async def order_refunds(self, order_ref: str) -> Answer:
        """An order's payments and refunds. Raises NotReached or NoAnswer."""
        return await self._call("GET", f"/orders/{_segment(order_ref)}/refunds")

    async def withdraw(self, operation_id: UUID, why: Mapping[str, Any]) -> Answer:
        """Take a proposal back; `why` may hold a `reason`. Raises NotReached or NoAnswer."""
        return await self._call("POST", f"/refunds/{operation_id}/withdraw", why)

    async def close(self) -> None:
        await self._http.aclose()

    async def _call(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        query: dict[str, str] | None = None,
        seconds: float = 0,
    ) -> Answer:
        # What a model sent goes on as it is, a fraction as a fraction: the door refuses by name.
        raw = None if content is None else json.dumps(content).encode()
        try:
            response = await self._http.request(
                method,
                path,
                content=raw,
                params=query,
                headers={"Content-Type": "application/json"} if raw else None,
                timeout=httpx2.Timeout(
                    ANSWER_SECONDS_MAX + min(max(seconds, 0), 60), connect=CONNECT_SECONDS_MAX
                ),
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotReached(type(error).__name__) from error
        except httpx2.TransportError as error:
            raise NoAnswer(type(error).__name__) from error
        return _read(response)


def checked_url(url: str) -> str:
    """The address, if it can be one: https, or http to this very machine. Raises ValueError."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise ValueError(f"{url!r} is not an address such as https://refunds.example")
    if parts.scheme == "http" and not local:
        raise ValueError("plain http would show the key to everybody on the way; use https")
    return url


def _read(response: httpx2.Response) -> Answer:
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.status_code in GATEWAY_STATUSES or not isinstance(body, dict):
        raise NoAnswer(f"status {response.status_code} without an answer of Aftersend")
    wait = response.headers.get("Retry-After", "")
    if response.status_code >= 400 and wait.isascii() and wait.isdigit():
        body.setdefault("retry_after_seconds", int(wait))  # a tool shows no headers
    return Answer(response.status_code, body)


def _segment(text: str) -> str:
    """The text as one part of a path. A dot too: "." and ".." would name another address."""
    return quote(text, safe="").replace(".", "%2E")
