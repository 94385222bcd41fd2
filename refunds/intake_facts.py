"""What the policy checks look at, read under the order's lock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from refunds import policies
from refunds.domain import states
from refunds.domain.judging import ProposalFacts
from refunds.models import Operation, Order, Payment, Proposal
from refunds.proposal import Caller, ProposalRequest

# What counts towards the sums: pending ones too, but nothing that ended without moving money.
_NOTHING_MOVED = (
    states.DENIED,
    states.REJECTED,
    states.WITHDRAWN,
    states.EXPIRED,
    states.FAILED,
)


def take_turns(caller: Caller, order: Order) -> None:
    """Let the proposals of one caller, and those for one customer, come one after the other.

    The order's lock keeps only its own proposals apart. Two on different orders would each sum up
    without the other, and many small ones at once would stay under every limit. Held until the
    transaction ends; the caller's turn always comes first, so that no two wait for each other.
    """
    turns = [f"proposals of {caller.actor}", f"proposals for {order.customer_ref or order.ref}"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(turn, 0)) FROM unnest(%s::text[]) turn",
            [turns],
        )


def gather(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    payment: Payment,
    *,
    ended_equivalent: str | None,
    machine_can_settle: bool,
    now: datetime,
) -> ProposalFacts:
    """All inputs of `policy.judge`; sums include this proposal, in minor units of its currency."""
    since = now - timedelta(seconds=policies.current().sum_window_seconds)
    counted = Operation.objects.filter(created_at__gte=since, currency=request.currency).exclude(
        state__in=_NOTHING_MOVED
    )
    mine = counted.filter(pk__in=_calls_of(caller, since)).aggregate(
        minor=Sum("amount_minor", default=0), on_order=Count("pk", filter=Q(order=order))
    )
    of_customer = (
        counted.filter(order__customer_ref=order.customer_ref)
        if order.customer_ref
        else counted.filter(order=order)
    ).aggregate(
        minor=Sum("amount_minor", default=0),
        of_payment_minor=Sum("amount_minor", filter=Q(order=order, payment=payment), default=0),
        equal=Count("pk", filter=Q(amount_minor=request.amount_minor)),
    )
    return ProposalFacts(
        amount_minor=request.amount_minor,
        currency=request.currency,
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
        caller_name=caller.name,
        caller_is_agent=caller.agent is not None,
        caller_may_propose=caller.has_account(payment.provider_account),
        ended_equivalent=ended_equivalent,
        separate_from=str(request.separate_from) if request.separate_from else None,
        uncertain_on_order=Operation.objects.filter(
            order=order, state__in=states.UNCERTAIN
        ).count(),
        equal_for_customer_count=of_customer["equal"],
        agent_day_minor=mine["minor"] if caller.agent else 0,
        agent_order_count=mine["on_order"] if caller.agent else 0,
        payment_sum_minor=of_customer["of_payment_minor"] + request.amount_minor,
        customer_sum_minor=of_customer["minor"] + request.amount_minor,
        proposer_sum_minor=mine["minor"] + request.amount_minor,
        machine_can_settle=machine_can_settle,
    )


def _calls_of(caller: Caller, since: datetime) -> QuerySet[Proposal, Any]:
    return Proposal.objects.filter(
        agent=caller.agent, person=caller.person, created=True, at__gte=since
    ).values("operation_id")
