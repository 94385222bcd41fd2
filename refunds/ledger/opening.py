"""Where an operation begins: one row, its keys and bytes for life, and what policy said of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from refunds.domain import states
from refunds.domain.judging import Judgement
from refunds.domain.policy import Policy
from refunds.ledger.identity import mint
from refunds.models import Event, Operation, Order, Payment, PolicyCheck
from refunds.proposal import Caller, ProposalRequest

# How long policy's own authority (tier 0) lasts before the dispatcher must have claimed.
_POLICY_AUTHORITY = timedelta(minutes=15)


def _where_to(judgement: Judgement, policy: Policy, now: datetime) -> dict[str, Any]:
    """State, event and clocks of the second event, which follows the proposal at once."""
    if judgement.denied:
        return {
            "event": "policy_denied",
            "state": states.DENIED,
            "expires_at": now,
            "settled_at": now,
            "blocks_equivalent": False,
        }
    if judgement.cleared:
        until = now + _POLICY_AUTHORITY
        return {
            "event": "policy_cleared",
            "state": states.AUTHORIZED,
            "expires_at": until,
            "due_at": now,
        }
    until = now + timedelta(seconds=policy.proposal_valid_seconds)
    return {
        "event": "policy_held",
        "state": states.AWAITING_APPROVAL,
        "expires_at": until,
        "due_at": until,
    }


def open_operation(
    request: ProposalRequest,
    caller: Caller,
    payment: Payment,
    judgement: Judgement,
    *,
    policy: Policy,
    now: datetime,
    separate: Operation | None,
    remedy_of: Operation | None = None,
) -> Operation:
    """Store the operation with its first two events and every check, all at version 2.

    The order's row is locked by the caller: the number in the business key is counted under it.
    Raises Refusal where the provider cannot express the amount.
    """
    order = payment.order
    # Counted under the order's lock; every operation of the order has taken its number here.
    request_ref = request.request_ref or f"request-{_next_number(order)}"
    where = _where_to(judgement, policy, now)
    event = where.pop("event")
    operation = Operation.objects.create(
        **mint(
            payment,
            amount_minor=request.amount_minor,
            currency=request.currency,
            reason_code=request.reason_code,
            request_ref=request_ref,
        ),
        reason_text=request.reason_text,
        requested_by_kind=request.requested_by_kind,
        requested_by_ref=request.requested_by_ref,
        ticket_ref=request.ticket_ref,
        run_ref=request.run_ref,
        step_ref=request.step_ref,
        claims=request.claims,
        read_links=list(request.read_links),
        proposer=caller.person,
        agent=caller.agent,
        agent_owner=caller.agent.owner if caller.agent else None,
        policy_version=policy.version,
        tier=judgement.tier,
        quorum=judgement.quorum,
        possible_repeat=judgement.possible_repeat,
        separate_from=separate,
        remedy_of=remedy_of,
        version=2,
        entered_at=now,
        created_at=now,
        send_version=order.version if judgement.cleared else None,
        **where,
    )
    _store_history(operation, caller, judgement, event, now)
    return operation


def _next_number(order: Order) -> int:
    return Operation.objects.filter(order=order).count() + 1


def _store_history(
    operation: Operation, caller: Caller, judgement: Judgement, event: str, now: datetime
) -> None:
    proposed = Event(
        operation=operation,
        seq=1,
        event="proposed",
        from_state=states.NONE,
        to_state=states.PROPOSED,
        actor_kind=states.CALLER,
        actor=caller.actor,
        detail={"remedy_of": str(operation.remedy_of_id)} if operation.remedy_of_id else {},
        at=now,
    )
    judged = Event(
        operation=operation,
        seq=2,
        event=event,
        from_state=states.PROPOSED,
        to_state=operation.state,
        actor_kind=states.POLICY,
        actor="policy",
        detail={"failed": judgement.failed_names(), "tier": judgement.tier},
        at=now,
    )
    Event.objects.bulk_create([proposed, judged])
    PolicyCheck.objects.bulk_create(
        PolicyCheck(
            operation=operation,
            position=position,
            name=check.name,
            passed=check.passed,
            says=check.says[:500],
            inputs=check.inputs,
        )
        for position, check in enumerate(judgement.checks, 1)
    )
