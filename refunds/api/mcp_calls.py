"""What the four tools do, in the words of the REST door: the same reading, the same results."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from aftersend_mcp import identity
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from pydantic import Field, ValidationError

from refunds import policies
from refunds.api import auth, errors, room
from refunds.api.fields import CALL_ID, OperationId, Ref
from refunds.api.forms import from_validation
from refunds.api.parsing import read_json
from refunds.api.schemas import WAIT_SECONDS_MAX, ProposalIn, Strict, WithdrawalIn
from refunds.domain.errors import Refusal
from refunds.models import Credential, Operation
from refunds.queries.balances import order_refunds, visible_order


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: whose, with what, and what its host sent beside it."""

    credential: Credential
    arguments: dict[str, Any]
    meta: Mapping[str, Any] | None


class StatusIn(Strict):
    """Which refund, and how long to wait for its end."""

    operation_id: OperationId
    session_id: Annotated[str, Field(pattern=CALL_ID)] | None = None
    wait_seconds: int = Field(0, ge=0, le=WAIT_SECONDS_MAX)


class OrderIn(Strict):
    """Which order."""

    order_ref: Ref


class WithdrawnIn(WithdrawalIn):
    """Which refund, and why."""

    operation_id: OperationId


async def propose_refund(call: Call) -> dict[str, Any]:
    """Record the wish, or find the refund it already stands for, and wait a little.

    Raises Refusal; OperationalError and InterfaceError only before anything is recorded.
    """
    auth.require_scope(call.credential, "refund:propose")
    recorded, wait_seconds = await sync_to_async(_record)(call)
    try:
        return await room.outcome(call.credential, recorded, wait_seconds=wait_seconds)
    except (OperationalError, InterfaceError):
        raise errors.recorded_but_away(recorded.operation_id) from None


def _record(call: Call) -> tuple[room.Recorded, int]:
    """Under the first id of this call that is not used up; see `identity.call_ids`."""
    for session_id, tool_call_id in _ids(call):
        ids = {"session_id": session_id, "tool_call_id": tool_call_id}
        proposal = _read(ProposalIn, call.arguments | ids)
        recorded = room.record(call.credential, proposal.request())
        if recorded.outcome == "created" or not _used_up(recorded.operation_id):
            break
    return recorded, proposal.wait_seconds


def _ids(call: Call) -> Iterator[tuple[str, str]]:
    if call.arguments.get("tool_call_id") is not None and not _session(call):
        raise Refusal(
            "field_missing",
            "session_id is missing: a tool_call_id names a call only within its session.",
            what_to_do="Send both of them, or neither.",
            field="session_id",
        )
    return identity.call_ids(call.arguments, call.meta, identity.NO_SESSION)


def _session(call: Call) -> str:
    return identity.session_of(call.arguments, call.meta, "")


def _used_up(operation_id: UUID) -> bool:
    """Whether the same words mean a new wish by now."""
    state, settled_at = Operation.objects.values_list("state", "settled_at").get(pk=operation_id)
    if state in identity.LEFT_NOTHING:
        return True
    window = timedelta(seconds=policies.current().repeat_window_seconds)
    return settled_at is not None and settled_at < timezone.now() - window


async def get_refund_status(call: Call) -> dict[str, Any]:
    """Where a refund stands, at once or within `wait_seconds`. Raises Refusal."""
    auth.require_scope(call.credential, "refund:read")
    asked = _read(StatusIn, call.arguments)
    return await room.status(
        call.credential,
        asked.operation_id,
        session_id=_session(call) or None,
        wait_seconds=asked.wait_seconds,
    )


async def list_order_refunds(call: Call) -> dict[str, Any]:
    """An order's payments and refunds, of the agent's accounts. Raises Refusal."""
    auth.require_scope(call.credential, "refund:read")
    asked = _read(OrderIn, call.arguments)
    return await sync_to_async(_order)(call.credential, asked.order_ref)


def _order(credential: Credential, order_ref: str) -> dict[str, Any]:
    visible = visible_order(order_ref, credential.agent.accounts)
    if visible is None:
        raise errors.not_found("order")
    return order_refunds(visible, timezone.now())


async def withdraw_refund(call: Call) -> dict[str, Any]:
    """Take a proposal back. Raises Refusal."""
    auth.require_scope(call.credential, "refund:propose")
    asked = _read(WithdrawnIn, call.arguments)
    return await sync_to_async(room.withdraw)(
        call.credential, asked.operation_id, reason=asked.reason
    )


def _read[T: Strict](shape: type[T], arguments: Mapping[str, Any]) -> T:
    """The arguments, as strictly as a body of the REST door. Raises Refusal."""
    # The server that called us has read the JSON leniently; written out again, a fraction is a
    # fraction and a number too long for an amount is one.
    tree = read_json(json.dumps(arguments).encode())
    try:
        return shape.model_validate(tree)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise from_validation(
            [each | {"loc": ("body", "arguments", *each["loc"])} for each in found], shape
        ) from None


CALLS: Final[dict[str, Callable[[Call], Awaitable[dict[str, Any]]]]] = {
    "propose_refund": propose_refund,
    "get_refund_status": get_refund_status,
    "list_order_refunds": list_order_refunds,
    "withdraw_refund": withdraw_refund,
}
