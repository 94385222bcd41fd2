"""The order feed and an order's balance."""

from __future__ import annotations

import json
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.utils import timezone
from ninja import Router, Status
from pydantic import ValidationError

from refunds import feed
from refunds.api import errors
from refunds.api.answers import (
    FEED_PROBLEMS,
    READ_PROBLEMS,
    BatchAnswer,
    OrderAnswer,
    OrderRefunds,
)
from refunds.api.auth import AgentRequest, Bearer
from refunds.api.door import BODY_BYTES_MAX, NDJSON, only
from refunds.api.forms import from_validation
from refunds.api.parsing import read_json
from refunds.api.schemas import OrderIn, OrderLineIn
from refunds.domain.errors import Refusal
from refunds.models import Agent, Order
from refunds.queries.balances import VisibleOrder, order_balances, order_refunds, visible_order
from refunds.snapshot import OrderSnapshot

SHAPES = "#/components/schemas/"
BATCH_LINES_MAX = 1_000
BATCH_BYTES_MAX = 2_000_000


def _line_schema() -> dict[str, Any]:
    """A line's shape; what it is made of is described once, with all the others."""
    schema = OrderLineIn.model_json_schema(ref_template=SHAPES + "{model}")
    del schema["$defs"]
    return schema


router = Router(tags=["orders"])
log = structlog.get_logger(__name__)


@router.get(
    "/orders/{path:order_ref}/refunds",
    operation_id="get_order_refunds",
    auth=Bearer("refund:read"),
    response={200: OrderRefunds, **READ_PROBLEMS},
    exclude_unset=True,
    summary="An order's balance and refunds",
)
def get_order_refunds(request: AgentRequest, order_ref: str) -> dict[str, Any]:
    """The balance of each payment of the agent's accounts, with its operations."""
    only(request)
    visible = _visible(order_ref, request.auth.agent)
    if visible is None:
        raise errors.not_found("order")
    return order_refunds(visible, timezone.now())


def _visible(order_ref: str, agent: Agent) -> VisibleOrder | None:
    # PostgreSQL has no NUL in its texts; an address may.
    return None if "\0" in order_ref else visible_order(order_ref, agent.accounts)


@router.put(
    "/orders/{path:order_ref}",
    operation_id="put_order",
    auth=Bearer("order:write"),
    response={(200, 201): OrderAnswer, **FEED_PROBLEMS},
    summary="Feed one order",
)
def put_order(request: AgentRequest, order_ref: str, order: OrderIn) -> Status[dict[str, Any]]:
    """Stores the facts of one order: 201 new, 200 known. What is not named stays."""
    only(request)
    created, answer = _feed(request.auth.agent, order_ref, order)
    return Status(201 if created else 200, answer)


def _feed(agent: Agent, order_ref: str, order: OrderIn) -> tuple[bool, dict[str, Any]]:
    """One upsert in its own transaction. Raises Refusal; nothing is changed then."""
    snapshot = order.snapshot(order_ref)
    _require_own_accounts(agent, snapshot)
    fed = feed.upsert(snapshot, by=f"agent:{agent.name}")
    after = visible_order(snapshot.ref, agent.accounts)
    assert after is not None, "what was just stored is there"
    return fed.created, order_balances(after.order, after.payments) | {"changed": fed.changed}


def _require_own_accounts(agent: Agent, snapshot: OrderSnapshot) -> None:
    if any(each.provider_account not in agent.accounts for each in snapshot.payments):
        raise errors.not_found("provider account")
    visible = visible_order(snapshot.ref, agent.accounts)
    if visible is None and Order.objects.filter(ref=snapshot.ref).exists():
        raise errors.not_found("order")
    own = {each.ref for each in snapshot.payments}
    own |= {each.ref for each in visible.payments} if visible else set()
    if any(each.payment_ref not in own for each in snapshot.external_refunds):
        raise errors.not_found("payment")


@router.post(
    "/orders:batch",
    operation_id="feed_orders",
    auth=Bearer("order:write"),
    response={200: BatchAnswer, **FEED_PROBLEMS},
    summary="Feed up to 1,000 orders",
    openapi_extra={
        "requestBody": {"required": True, "content": {NDJSON: {"schema": _line_schema()}}},
        "responses": {200: {"content": {NDJSON: {"schema": {"$ref": SHAPES + "BatchAnswer"}}}}},
    },
)
def feed_batch(request: AgentRequest) -> HttpResponse:
    """NDJSON in, one order a line with its `order_ref`; NDJSON out, one result a line.

    Each line is a transaction of its own: a refused line says so and changes nothing. Generators
    that know no NDJSON leave this call out: send the lines yourself, or one order at a time.
    """
    only(request)
    if request.content_type != NDJSON:
        raise errors.not_json(NDJSON)
    if len(request.body) > BATCH_BYTES_MAX:
        raise errors.too_large()
    lines = [
        (number, line) for number, line in enumerate(request.body.split(b"\n"), 1) if line.strip()
    ]
    if len(lines) > BATCH_LINES_MAX:
        raise errors.too_large()
    answers = _answers(request.auth.agent, lines)
    content = "".join(json.dumps(answer) + "\n" for answer in answers)
    return HttpResponse(content, content_type=NDJSON)


def _answers(agent: Agent, lines: list[tuple[int, bytes]]) -> list[dict[str, Any]]:
    """One result a line. Once the database is away, the rest is not tried."""
    answers: list[dict[str, Any]] = []
    away = False
    for number, line in lines:
        ref: str | None = None
        try:
            if away:
                raise errors.database_unavailable()
            order = _order_of(line)
            ref = order.order_ref
            created, answer = _feed(agent, ref, order)
            answer |= {"status": 201 if created else 200}
        except Refusal as refusal:
            answer = errors.body(refusal) | {"order_ref": ref or _named(line, refusal)}
        except (OperationalError, InterfaceError):
            away = True
            answer = errors.body(errors.database_unavailable()) | {"order_ref": ref}
        except Exception:
            # A fault of ours on one line must not cost the answers of the lines before it.
            log.exception("batch_line_failed", line=number)
            answer = errors.body(errors.internal()) | {"order_ref": ref}
        answers.append({"line": number} | answer)
    return answers


def _order_of(line: bytes) -> OrderLineIn:
    if len(line) > BODY_BYTES_MAX:
        raise errors.too_large()
    try:
        return OrderLineIn.model_validate(read_json(line))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise from_validation(
            [each | {"loc": ("body", "order", *each["loc"])} for each in found], OrderLineIn
        ) from None


def _named(line: bytes, refusal: Refusal) -> str | None:
    """The order that a refused line names; None where it is no clean JSON."""
    if refusal.status == 400:
        return None
    try:
        ref = json.loads(line)["order_ref"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return ref if isinstance(ref, str) else None
