"""What the policy checks look at, as it was read under the order's lock. Pure."""

from __future__ import annotations

from refunds.domain.judging import ProposalFacts
from refunds.intake_look import OnPayment, Seen
from refunds.models import Order
from refunds.proposal import Caller, ProposalRequest


def gather(
    request: ProposalRequest,
    caller: Caller,
    order: Order,
    on: OnPayment,
    seen: Seen,
    *,
    ended_equivalent: str | None,
    machine_can_settle: bool,
) -> ProposalFacts:
    """All inputs of `policy.judge`; sums include this proposal, in minor units of its currency."""
    payment = on.payment
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
        uncertain_on_order=seen.uncertain,
        equal_for_customer_count=seen.equal_of_customer,
        agent_day_minor=seen.of_caller_minor if caller.agent else 0,
        agent_order_count=seen.of_caller_on_order if caller.agent else 0,
        payment_sum_minor=on.sum_minor + request.amount_minor,
        customer_sum_minor=seen.of_customer_minor + request.amount_minor,
        proposer_sum_minor=seen.of_caller_minor + request.amount_minor,
        machine_can_settle=machine_can_settle,
    )
