"""A wish of the past becomes an operation: judged by the policy as of then."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from refunds.domain import fingerprint, states
from refunds.domain.contract import allowed
from refunds.domain.judging import Judgement, ProposalFacts, judge
from refunds.models import Agent, Operation, Person, PolicyCheck, Proposal
from refunds.providers import registry
from refunds.providers.base import Wish
from review.demo.past.desk import Desk
from review.demo.past.rows import SESSION, Asked, Past, Sold

_NOTHING_MOVED = frozenset(
    {states.DENIED, states.REJECTED, states.WITHDRAWN, states.EXPIRED, states.FAILED}
)
_DONE = frozenset(
    {states.SUCCEEDED, states.MISMATCHED, states.RETURNED, states.FAILED, states.REJECTED}
)


def propose(desk: Desk, sold: Sold, caller: Agent | Person, at: datetime, asked: Asked) -> Past:
    """A wish becomes an operation: judged, and stored as denied or waiting for people."""
    facts = _facts(desk, sold, caller, at, asked)
    judgement = judge(facts, desk.policy, at)
    row = _operation(desk, sold, caller, at, asked, judgement)
    held_until = at + timedelta(seconds=desk.policy.proposal_valid_seconds)
    past = Past(row, sold, caller, steps=[])
    desk.rows.operations.append(past)
    name = caller.name if isinstance(caller, Agent) else caller.username
    kind = "agent" if isinstance(caller, Agent) else "person"
    desk.move(past, "proposed", states.CALLER, f"{kind}:{name}", at)
    event = "policy_denied" if judgement.denied else "policy_held"
    detail = {"failed": judgement.failed_names(), "tier": judgement.tier}
    desk.move(past, event, states.POLICY, "policy", at, detail)
    row.expires_at = at if judgement.denied else held_until
    row.due_at = None if judgement.denied else held_until
    _store_call(desk, past, judgement, at)
    return past


def _operation(
    desk: Desk,
    sold: Sold,
    caller: Agent | Person,
    at: datetime,
    asked: Asked,
    judgement: Judgement,
) -> Operation:
    operation_id = _uuid7(desk, at)
    sold.operation_count += 1
    number = len(desk.rows.operations) + 1
    payment = sold.payment
    request_ref = f"request-{sold.operation_count}"
    business_key = f"refund:{sold.order.ref}:{request_ref}"
    account = registry.account(payment.provider_account)
    body = registry.adapter(account).body(
        Wish(
            marker=str(operation_id),
            payment_ref=payment.ref,
            amount_minor=asked.amount_minor,
            currency=payment.currency,
            reason_code=asked.reason_code,
        )
    )
    kind, ref = asked.requested_by
    agent = caller if isinstance(caller, Agent) else None
    return Operation(
        id=operation_id,
        business_key=business_key,
        order=sold.order,
        payment=payment,
        provider_account=payment.provider_account,
        amount_minor=asked.amount_minor,
        currency=payment.currency,
        reason_code=asked.reason_code,
        reason_text=asked.reason_text,
        request_ref=request_ref,
        requested_by_kind=kind,
        requested_by_ref=ref or sold.order.customer_ref,
        ticket_ref=f"T-{20100 + number}",
        run_ref=f"run-{4100 + number}" if agent else "",
        step_ref=str(number % 5 + 1) if agent else "",
        claims=asked.claims,
        proposer=caller if isinstance(caller, Person) else None,
        agent=agent,
        agent_owner=agent.owner if agent else None,
        provider_key=fingerprint.provider_key(operation_id),
        body=body,
        fingerprint=fingerprint.material_digest(
            operation_id=operation_id,
            business_key=business_key,
            provider_account=payment.provider_account,
            payment_ref=payment.ref,
            amount_minor=asked.amount_minor,
            currency=payment.currency,
            reason_code=asked.reason_code,
            body=body,
        ),
        policy_version=desk.policy.version,
        tier=judgement.tier,
        quorum=judgement.quorum,
        possible_repeat=judgement.possible_repeat,
        state=states.NONE,
        version=0,
        entered_at=at,
        created_at=at,
        expires_at=at,
    )


def _store_call(desk: Desk, past: Past, judgement: Judgement, at: datetime) -> None:
    row, agent = past.row, past.row.agent
    desk.rows.checks.extend(
        PolicyCheck(
            operation=row,
            position=position,
            name=check.name,
            passed=check.passed,
            says=check.says[:500],
            inputs=check.inputs,
        )
        for position, check in enumerate(judgement.checks, 1)
    )
    desk.rows.proposals.append(
        Proposal(
            operation=row,
            agent=agent,
            person=row.proposer,
            session_id=SESSION,
            tool_call_id=f"call_{len(desk.rows.operations)}",
            arguments_digest=fingerprint.arguments_digest(
                order_ref=row.order.ref,
                payment_ref=row.payment.ref,
                amount_minor=row.amount_minor,
                currency=row.currency,
                reason_code=row.reason_code,
            ),
            created=True,
            at=at,
        )
    )


def _facts(
    desk: Desk, sold: Sold, caller: Agent | Person, at: datetime, asked: Asked
) -> ProposalFacts:
    """What the policy looked at then."""
    since = at - timedelta(seconds=desk.policy.sum_window_seconds)
    order, payment = sold.order, sold.payment
    counted = [
        each
        for each in desk.rows.operations
        if since <= each.row.created_at <= at
        and each.row.currency == payment.currency
        and each.row.state not in _NOTHING_MOVED
    ]
    mine = [each for each in counted if each.caller == caller]
    theirs = [each for each in counted if each.row.order.customer_ref == order.customer_ref]
    here = [each for each in counted if each.sold is sold]
    contract = registry.account(payment.provider_account).contract
    is_agent = isinstance(caller, Agent)
    return ProposalFacts(
        amount_minor=asked.amount_minor,
        currency=payment.currency,
        order_ref=order.ref,
        order_version=order.version,
        order_frozen=order.frozen,
        payment_ref=payment.ref,
        payment_state=payment.state,
        payment_currency=payment.currency,
        captured_minor=payment.captured_minor,
        refunded_minor=payment.refunded_minor,
        held_minor=payment.held_minor,
        captured_at=payment.captured_at,
        facts_as_of=order.facts_as_of,
        caller_name=caller.name if isinstance(caller, Agent) else caller.username,
        caller_is_agent=is_agent,
        caller_may_propose=True,
        ended_equivalent=_equivalent(desk, sold, asked.amount_minor, at),
        separate_from=None,
        uncertain_on_order=sum(each.row.state in states.UNCERTAIN for each in here),
        equal_for_customer_count=sum(
            each.row.amount_minor == asked.amount_minor for each in theirs
        ),
        agent_day_minor=_sum(mine) if is_agent else 0,
        agent_order_count=sum(each.sold is sold for each in mine) if is_agent else 0,
        payment_sum_minor=_sum(here) + asked.amount_minor,
        customer_sum_minor=_sum(theirs) + asked.amount_minor,
        proposer_sum_minor=_sum(mine) + asked.amount_minor,
        machine_can_settle=allowed(contract).can_settle,
    )


def _equivalent(desk: Desk, sold: Sold, amount_minor: int, at: datetime) -> str | None:
    since = at - timedelta(seconds=desk.policy.repeat_window_seconds)
    for each in desk.rows.operations:
        row = each.row
        equal = each.sold is sold and row.amount_minor == amount_minor and row.state in _DONE
        if equal and row.settled_at is not None and row.settled_at >= since:
            return str(row.pk)
    return None


def _uuid7(desk: Desk, at: datetime) -> UUID:
    """An id of that instant: ids are ordered by time."""
    stamp = int(at.timestamp() * 1000) << 80
    noise = desk.chance.getrandbits(74)
    return UUID(int=stamp | 0x7 << 76 | (noise >> 62) << 64 | 0b10 << 62 | noise & (1 << 62) - 1)


def _sum(operations: list[Past]) -> int:
    return sum(each.row.amount_minor for each in operations)
