"""The one room behind the agents' two doors: record, read, wait, withdraw. No HTTP in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.utils import timezone

from refunds import intake, withdrawal
from refunds.api import budget, errors, waiting
from refunds.domain import sameness
from refunds.domain.errors import Refusal
from refunds.models import Credential
from refunds.proposal import Caller, ProposalRequest
from refunds.queries import results


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a proposal led to, before its result is read. `outcome`: created, same, already_done."""

    operation_id: UUID
    outcome: str
    rests: bool
    session_id: str


def record(credential: Credential, request: ProposalRequest) -> Recorded:
    """The one write transaction of a proposal. Raises Refusal; `existing` reads what it met."""
    proposed = intake.propose(request, Caller(agent=credential.agent))
    operation = proposed.operation
    rests = waiting.at_rest(operation.state, operation.pending_reason, patient=False)
    if not rests:
        waiting.hang_up()
    return Recorded(operation.pk, proposed.outcome, rests, request.session_id)


async def outcome(
    credential: Credential, recorded: Recorded, *, wait_seconds: int
) -> dict[str, Any]:
    """The result of a recorded proposal, after a short wait while it is on its way.

    Repeating a proposal is asking for its status: it counts in the session's budget.
    """
    if recorded.outcome == "same":
        return await status(
            credential,
            recorded.operation_id,
            session_id=recorded.session_id,
            wait_seconds=0 if recorded.rests else wait_seconds,
            patient=False,
        )
    if not recorded.rests:
        await waiting.wait(recorded.operation_id, seconds=wait_seconds, patient=False)
    word = results.ALREADY_DONE if recorded.outcome == results.ALREADY_DONE else None
    return await sync_to_async(read)(credential, recorded.operation_id, word)


def read(credential: Credential, operation_id: UUID, outcome: str | None = None) -> dict[str, Any]:
    """The result contract of one refund. Raises Refusal 404, also for another account's."""
    operation = results.find(operation_id, credential.agent.accounts)
    if operation is None:
        raise errors.not_found("refund")
    return results.result(operation, timezone.now(), outcome=outcome)


def existing(credential: Credential, refusal: Refusal) -> dict[str, Any] | None:
    """The refund that a refusal met, as the result `conflict`; None where it met none.

    None too where a name was used for something else: that refund's good news would be read as
    the answer to a wish that was never recorded. Raises Refusal 404 for another account's.
    """
    if not isinstance(refusal.operation_id, UUID):
        return None
    met = read(credential, refusal.operation_id, results.CONFLICT)
    return None if refusal.code in sameness.REUSED_NAMES else met


async def status(
    credential: Credential,
    operation_id: UUID,
    *,
    session_id: str | None,
    wait_seconds: int,
    patient: bool = True,
) -> dict[str, Any]:
    """Where a refund stands, at once or as soon as it is at rest within `wait_seconds`.

    One call of the session's budget, however long it waits; over the budget the answer comes at
    once and says when to ask again. Raises Refusal 404.
    """
    answer = await sync_to_async(read)(credential, operation_id)
    if results.has_ended(answer):
        return answer
    left_seconds = await sync_to_async(budget.spend)(credential, operation_id, session_id)
    if left_seconds is not None:
        return results.stopped(answer, left_seconds)
    if not wait_seconds:
        return answer
    await waiting.wait(operation_id, seconds=wait_seconds, patient=patient)
    return await sync_to_async(read)(credential, operation_id)


def withdraw(credential: Credential, operation_id: UUID, *, reason: str = "") -> dict[str, Any]:
    """Take back what this agent proposed, before it is sent; again is the same result.

    Raises Refusal: 404, 409 already_sent or already_decided, 422 for the reason.
    """
    withdrawal.withdraw(operation_id, by=Caller(agent=credential.agent), reason=reason)
    return read(credential, operation_id)
