"""The agents' door as a caller sees it: a key, JSON in, status and JSON out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.test import Client

from refunds import credentials
from refunds.models import (
    Agent,
    Event,
    Operation,
    Order,
    OrderMove,
    Payment,
    PolicyCheck,
    Proposal,
    ProviderRefund,
)

_calls = itertools.count(1)
PROBLEM_FIELDS = {
    "type",
    "title",
    "status",
    "code",
    "detail",
    "what_to_do",
    "field",
    "operation_id",
    "outcome",
    "next_action",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def code(self) -> str:
        """The code of a problem; the shape of problems is checked on the way."""
        assert self.headers["Content-Type"] == "application/problem+json", self
        assert self.body.keys() >= PROBLEM_FIELDS, self
        assert self.body["status"] == self.status
        assert self.body["type"] == f"/problems/{self.body['code']}"
        assert self.body["detail"]
        assert self.body["what_to_do"]
        return str(self.body["code"])


def wish(order_ref: str = "4821", **changes: Any) -> dict[str, Any]:
    """A proposal of 79.00 USD with a tool call of its own; a change to `...` leaves a field out."""
    fields: dict[str, Any] = {
        "session_id": "chat-8812",
        "tool_call_id": f"call_{next(_calls)}",
        "requested_by": {"kind": "customer", "ref": "cus_204"},
        "order_ref": order_ref,
        "amount_minor": 7900,
        "currency": "USD",
        "reason_code": "damaged_item",
        "reason_text": "headphones arrived broken",
        "wait_seconds": 0,
    } | changes
    return {name: value for name, value in fields.items() if value is not ...}


class Door:
    """One agent with one key."""

    def __init__(self, agent: Agent, *scopes: str) -> None:
        self.agent = agent
        scopes = scopes or ("refund:propose", "refund:read")
        self.credential, self.key = credentials.mint(agent, scopes=list(scopes))
        self.client = Client(raise_request_exception=False)

    def call(self, method: str, path: str, content: str | bytes = b"", **headers: Any) -> Answer:
        """One request below /api/v1; content is sent as these very bytes."""
        sent = {"Authorization": f"Bearer {self.key}"} | headers.pop("headers", {})
        response = self.client.generic(
            method,
            f"/api/v1{path}",
            content,
            content_type=headers.pop("content_type", "application/json"),
            headers={name: value for name, value in sent.items() if value is not None},
        )
        raw = response.content.decode()
        lines = response["Content-Type"] == "application/x-ndjson"
        body = {"lines": [json.loads(line) for line in raw.splitlines()]} if lines else None
        return Answer(response.status_code, body or json.loads(raw), dict(response.items()))

    def send(self, method: str, path: str, value: Any) -> Answer:
        return self.call(method, path, json.dumps(value))

    def propose(self, order_ref: str = "4821", **changes: Any) -> Answer:
        return self.send("POST", "/refunds", wish(order_ref, **changes))

    def get(self, path: str) -> Answer:
        return self.call("GET", path)


def books() -> dict[str, Any]:
    """Everything a refused call must leave as it was."""
    return {
        "operations": list(Operation.objects.order_by("pk").values_list("pk", "version", "state")),
        "events": Event.objects.count(),
        "checks": PolicyCheck.objects.count(),
        "calls": Proposal.objects.count(),
        "orders": list(Order.objects.order_by("pk").values_list("ref", "version", "feed_seq")),
        "moves": OrderMove.objects.count(),
        "payments": list(
            Payment.objects.order_by("pk").values_list(
                "ref", "captured_minor", "refunded_minor", "held_minor", "state"
            )
        ),
        "refunds": ProviderRefund.objects.count(),
    }


@contextmanager
def nothing_changes() -> Iterator[None]:
    """What happens in here is refused, and leaves everything as it was."""
    before = books()
    yield
    assert books() == before
