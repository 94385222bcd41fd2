"""The agents' REST door: propose, ask, list. Nobody approves or sends here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Status
from pydantic import Field

from refunds import intake
from refunds.api import errors, orders, waiting
from refunds.api.answers import PROBLEMS, Page, Result
from refunds.api.auth import AgentRequest, Bearer
from refunds.api.door import Door, StrictJson, only
from refunds.api.schemas import WAIT_SECONDS_MAX, ProposalIn
from refunds.domain.errors import Refusal
from refunds.models import Credential
from refunds.proposal import Caller
from refunds.queries import results

PAGE_DEFAULT = 50
PAGE_MAX = 100

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


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a proposal led to, before its result is read."""

    operation_id: UUID
    outcome: str
    rests: bool


@api.post(
    "/refunds",
    operation_id="propose_refund",
    auth=Bearer("refund:propose"),
    response={(200, 201): Result, **PROBLEMS},
    exclude_unset=True,
    summary="Propose a refund",
    tags=["refunds"],
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
        answer = await _outcome(request.auth, recorded, proposal.wait_seconds)
    except (OperationalError, InterfaceError):
        return errors.problem(errors.recorded_but_away(recorded.operation_id))
    response["Location"] = reverse("api:get_refund", args=[recorded.operation_id])
    return Status(201 if recorded.outcome == "created" else 200, answer)


async def _outcome(
    credential: Credential, recorded: _Recorded, wait_seconds: int
) -> dict[str, Any]:
    if not recorded.rests:
        await waiting.wait(recorded.operation_id, seconds=wait_seconds, patient=False)
    outcome = results.ALREADY_DONE if recorded.outcome == results.ALREADY_DONE else None
    return await sync_to_async(_result)(credential, recorded.operation_id, outcome)


def _record(credential: Credential, proposal: ProposalIn) -> _Recorded | HttpResponse:
    """The one write transaction of a proposal; a conflict is answered with what it met."""
    try:
        proposed = intake.propose(proposal.request(), Caller(agent=credential.agent))
    except Refusal as refusal:
        if refusal.operation_id is None:
            raise
        existing = _result(credential, refusal.operation_id, results.CONFLICT)
        return errors.problem(refusal, existing)
    operation = proposed.operation
    rests = waiting.at_rest(operation.state, operation.pending_reason, patient=False)
    if not rests:
        waiting.hang_up()
    return _Recorded(operation.pk, proposed.outcome, rests)


def _result(
    credential: Credential, operation_id: object, outcome: str | None = None
) -> dict[str, Any]:
    assert isinstance(operation_id, UUID)
    operation = results.find(operation_id, credential.agent.accounts)
    if operation is None:
        raise errors.not_found("refund")
    return results.result(operation, timezone.now(), outcome=outcome)


@api.get(
    "/refunds/{uuid:operation_id}",
    operation_id="get_refund",
    auth=Bearer("refund:read"),
    response={200: Result, **PROBLEMS},
    exclude_unset=True,
    summary="Ask what became of a refund",
    tags=["refunds"],
)
async def get_refund(
    request: AgentRequest,
    operation_id: UUID,
    wait_seconds: Annotated[int, Field(ge=0, le=WAIT_SECONDS_MAX)] = 0,
) -> dict[str, Any]:
    """Answers at once, or within `wait_seconds` as soon as the refund has ended."""
    only(request, "wait_seconds")
    answer = await sync_to_async(_result)(request.auth, operation_id)
    if not wait_seconds:
        return answer
    await waiting.wait(operation_id, seconds=wait_seconds, patient=True)
    return await sync_to_async(_result)(request.auth, operation_id)


@api.get(
    "/refunds",
    operation_id="list_refunds",
    auth=Bearer("refund:read"),
    response={200: Page, **PROBLEMS},
    exclude_unset=True,
    summary="List refunds",
    tags=["refunds"],
)
def list_refunds(
    request: AgentRequest,
    after: UUID | None = None,
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
