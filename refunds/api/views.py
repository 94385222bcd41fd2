"""The agents' REST door: propose, ask, withdraw, list. Nobody approves or sends here."""

from __future__ import annotations

from typing import Annotated, Any, Final

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Body, Status
from pydantic import Field

from refunds.api import errors, orders, room
from refunds.api.answers import PROBLEMS, READ_PROBLEMS, Page, Result
from refunds.api.auth import AgentRequest, Bearer
from refunds.api.door import Door, StrictJson, only
from refunds.api.fields import CALL_ID, OperationId
from refunds.api.schemas import PAGE_MAX, WAIT_SECONDS_MAX, ProposalIn, WithdrawalIn
from refunds.domain.errors import Refusal
from refunds.models import Credential
from refunds.queries import results

PAGE_DEFAULT = 50
NO_REASON: Final = WithdrawalIn()
LOCATION: Final = {
    "headers": {
        "Location": {
            "required": True,
            "description": "Where to ask for its status",
            "schema": {"type": "string"},
        }
    }
}

api = Door(
    title="Aftersend",
    version="1",
    description="Propose refunds and ask what became of them. Repeats and conflicts are results;"
    " `unknown` is no failure: do not propose again, ask for the status.",
    parser=StrictJson(),
    docs_url=None,
    urls_namespace="api",
)
errors.register(api)
api.add_router("", orders.router)


@api.post(
    "/refunds",
    operation_id="propose_refund",
    auth=Bearer("refund:propose"),
    response={(200, 201): Result, **PROBLEMS},
    exclude_unset=True,
    summary="Propose a refund",
    tags=["refunds"],
    openapi_extra={"responses": dict.fromkeys((200, 201), LOCATION)},
)
async def propose(
    request: AgentRequest, proposal: ProposalIn, response: HttpResponse
) -> HttpResponse | Status[dict[str, Any]]:
    """Stores the wish, or finds the operation it already stands for: 201 new, 200 known.

    Waits up to `wait_seconds` while the operation is on its way; not for people.
    """
    only(request)
    recorded = await sync_to_async(_record)(request.auth, proposal)
    if isinstance(recorded, HttpResponse):
        return recorded
    try:
        answer = await room.outcome(request.auth, recorded, wait_seconds=proposal.wait_seconds)
    except (OperationalError, InterfaceError):
        return errors.problem(errors.recorded_but_away(recorded.operation_id))
    response["Location"] = reverse("api:get_refund", args=[recorded.operation_id])
    return Status(201 if recorded.outcome == "created" else 200, answer)


def _record(credential: Credential, proposal: ProposalIn) -> room.Recorded | HttpResponse:
    try:
        return room.record(credential, proposal.request())
    except Refusal as refusal:
        return _conflict(credential, refusal)


def _conflict(credential: Credential, refusal: Refusal) -> HttpResponse:
    """A conflict is answered with the refund it met; every other refusal goes on."""
    existing = room.existing(credential, refusal)
    if existing is None:
        raise refusal
    return errors.problem(refusal, existing)


@api.get(
    "/refunds/{operation_id}",
    operation_id="get_refund",
    auth=Bearer("refund:read"),
    response={200: Result, **READ_PROBLEMS},
    exclude_unset=True,
    summary="Ask what became of a refund",
    tags=["refunds"],
)
async def get_refund(
    request: AgentRequest,
    operation_id: OperationId,
    wait_seconds: Annotated[int, Field(ge=0, le=WAIT_SECONDS_MAX)] = 0,
    session_id: Annotated[str | None, Field(pattern=CALL_ID)] = None,
) -> dict[str, Any]:
    """Answers at once, or within `wait_seconds` as soon as the refund has ended.

    One session (or, without `session_id`, one key) may ask 5 times within 10 minutes for a refund
    that has not ended, and a wait is one call. After that the answer is as true, comes at once,
    and says `stop_and_tell_customer` and when to ask again.
    """
    only(request, "wait_seconds", "session_id")
    return await room.status(
        request.auth, operation_id, session_id=session_id, wait_seconds=wait_seconds
    )


@api.post(
    "/refunds/{operation_id}/withdraw",
    operation_id="withdraw_refund",
    auth=Bearer("refund:propose"),
    response={200: Result, **PROBLEMS},
    exclude_unset=True,
    summary="Withdraw a refund that is not sent",
    tags=["refunds"],
)
def withdraw(
    request: AgentRequest,
    operation_id: OperationId,
    withdrawal: Annotated[WithdrawalIn, Body()] = NO_REASON,
) -> HttpResponse | dict[str, Any]:
    """Takes back what this agent proposed, before it is sent; again is the same result.

    After the sending has begun it is 409 `already_sent` with the refund as it stands.
    """
    only(request)
    try:
        return room.withdraw(request.auth, operation_id, reason=withdrawal.reason)
    except Refusal as refusal:
        return _conflict(request.auth, refusal)


@api.get(
    "/refunds",
    operation_id="list_refunds",
    auth=Bearer("refund:read"),
    response={200: Page, **READ_PROBLEMS},
    exclude_unset=True,
    summary="List refunds",
    tags=["refunds"],
)
def list_refunds(
    request: AgentRequest,
    after: OperationId | None = None,
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> dict[str, Any]:
    """The refunds of the agent's accounts, oldest first."""
    only(request, "after", "limit")
    found, more = results.page(request.auth.agent.accounts, after=after, count_max=limit)
    now = timezone.now()
    return {
        "items": [results.result(operation, now) for operation in found],
        "next": str(more) if more else None,
    }


def no_such_address(request: HttpRequest) -> HttpResponse:
    """Whatever else lies below /api/."""
    response = errors.problem(errors.no_such_address())
    response["Cache-Control"] = "no-store"
    return response
