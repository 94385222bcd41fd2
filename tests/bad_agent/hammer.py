"""Sixteen connections that send in volleys, and what is looked at in every answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tests.bad_agent.calls import Call
from tests.bad_agent.wishes import Wish

CONNECTIONS = 16
CALL_SECONDS_MAX = 30
EXAMPLES_MAX = 5
# Codes whose answer names the operation that the call stands for; another code names another's.
_POINTS_TO_IT = ("", "equivalent_unresolved")


@dataclass
class Heard:
    """Everything that was answered, counted."""

    calls: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    server_errors: int = 0
    # Refusals without a code or a sentence, answers that were not right, and calls that got none.
    speechless: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wrong_count: Counter[str] = field(default_factory=Counter)
    # Pairs of proposals of one wish of which each was sent before the other was answered.
    true_races: int = 0
    # wish -> ids of the operations that answers named for it
    named: dict[Wish, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def clean(self) -> bool:
        return not (self.server_errors or self.speechless or self.wrong_count)

    def hear(self, call: Call, status: int, text: str) -> str | None:
        """Judge one answer; the operation it names, where it names the one of the call's wish."""
        self.calls[call.kind] += 1
        if status >= 500:
            self.server_errors += 1
        body = _object(text)
        code = str(body.get("code") or "") if status >= 400 and not call.console else ""
        if status >= 400 and not call.console:
            self.refusals[code] += 1
            if not (code and body.get("detail") and body.get("what_to_do")):
                self._note(self.speechless, call, status, text)
        if (status, code) not in call.right:
            self.wrong_count[f"{call.kind}: {status} {code}"] += 1
            self._note(self.wrong, call, status, text)
        if call.wish is None or code not in _POINTS_TO_IT or not body.get("operation_id"):
            return None
        self.named[call.wish].add(body["operation_id"])
        return str(body["operation_id"])

    def _note(self, where: list[str], call: Call, status: int, text: str) -> None:
        if len(where) < EXAMPLES_MAX:
            where.append(f"{call.kind} {call.content[:200]!r} was answered {status} {text[:300]}")


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Hammer:
    """Keeps one connection per sender open for the whole run; use as an async context manager."""

    def __init__(self, address: str, heard: Heard, on_named: Callable[[Wish, str], None]) -> None:
        self.heard = heard
        self._on_named = on_named
        one_each = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        self._senders = [
            httpx.AsyncClient(
                base_url=address, timeout=CALL_SECONDS_MAX, limits=one_each, trust_env=False
            )
            for _ in range(CONNECTIONS)
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for sender in self._senders:
            await sender.aclose()

    async def volley(self, calls: list[Call]) -> None:
        """All at once, one per connection; returns when each was answered."""
        assert len(calls) <= CONNECTIONS
        spans = await asyncio.gather(
            *(self._send(sender, call) for sender, call in zip(self._senders, calls, strict=False))
        )
        self.heard.true_races += _races(calls, spans)

    async def _send(self, sender: httpx.AsyncClient, call: Call) -> tuple[float, float]:
        headers = {"Content-Type": call.content_type}
        if call.key:
            headers["Authorization"] = f"Bearer {call.key}"
        sent_at = time.monotonic()
        try:
            answer = await sender.request(
                call.method, call.path, content=call.content, headers=headers
            )
        except httpx.TransportError as error:
            self.heard.wrong_count[f"{call.kind}: no answer ({type(error).__name__})"] += 1
            return sent_at, time.monotonic()
        span = sent_at, time.monotonic()
        named = self.heard.hear(call, answer.status_code, answer.text)
        if named is not None and call.wish is not None:
            self._on_named(call.wish, named)
        return span


def _races(calls: list[Call], spans: list[tuple[float, float]]) -> int:
    """Pairs of proposals of one wish whose spans overlap."""
    proposals = [
        (call.wish, span)
        for call, span in zip(calls, spans, strict=True)
        if call.wish is not None and call.method == "POST"
    ]
    return sum(
        one == other and span[0] < later[1] and later[0] < span[1]
        for n, (one, span) in enumerate(proposals)
        for other, later in proposals[n + 1 :]
    )
