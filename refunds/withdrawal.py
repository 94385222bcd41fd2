"""Calling a refund off before it is sent: its proposer may, and a lead."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from refunds.consent import already_ended, already_sent, roles_of
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import Actor, lock, release, transition
from refunds.models import Operation
from refunds.proposal import Caller
from refunds.text import check_text

_OPEN = (states.AWAITING_APPROVAL, states.AUTHORIZED)
_ENDED_UNSENT = (states.DENIED, states.REJECTED, states.EXPIRED)


def withdraw(operation_id: UUID, *, by: Caller, reason: str = "") -> Operation:
    """End an operation as `withdrawn`, in the caller's authority; gives held money back.

    An agent withdraws what it proposed, by whichever of its keys; a person what they proposed;
    a lead anything. Withdrawing what is withdrawn already is the same result and no error, and
    changes nothing. `reason`: at most 500 characters, may be empty.

    Raises Refusal: not_found (404; for an agent also another's operation), role_missing (403),
    already_sent (409, after the claim), already_decided (409, ended before anything was sent),
    text_too_long, text_control, text_card_number (422).
    """
    check_text(reason, field="reason", length_max=500)
    with transaction.atomic():
        try:
            locked = lock(operation_id)
        except Operation.DoesNotExist:
            raise _not_found() from None
        operation = locked.operation
        actor = _authority(operation, by)
        if operation.state == states.WITHDRAWN:
            return operation
        if operation.state in _ENDED_UNSENT:
            raise already_ended(operation, "Not withdrawn")
        if operation.state not in _OPEN:
            raise already_sent(operation, "Not withdrawn")
        release(locked, by=actor)
        transition(operation, "withdrawn", by=actor, detail={"reason": reason.strip()})
    return operation


def _authority(operation: Operation, by: Caller) -> Actor:
    """As whom the caller withdraws: the proposer, or a lead."""
    if by.agent is not None:
        if operation.agent_id != by.agent.pk or not by.has_account(operation.provider_account):
            raise _not_found()
        return Actor(states.CALLER, by.actor)
    assert by.person is not None
    if operation.proposer_id == by.person.pk:
        return Actor(states.CALLER, by.actor)
    if "lead" in roles_of(by.person):
        return Actor(states.LEAD, by.actor)
    raise Refusal(
        "role_missing",
        "You can read this but not withdraw it: somebody else proposed it.",
        status=403,
        what_to_do="Ask its proposer or a support lead.",
        operation_id=operation.pk,
    )


def _not_found() -> Refusal:
    """One answer for what does not exist and for what another agent proposed."""
    return Refusal(
        "not_found",
        "There is no refund of yours with this id.",
        status=404,
        what_to_do="Check the id; an agent withdraws only what it proposed.",
    )
