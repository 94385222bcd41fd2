"""Plain builders: everything is made by the product's own verbs, never by inserting rows."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from django.utils import timezone

from refunds import approvals, feed, intake
from refunds.consent import Shown
from refunds.ledger import siblings_of
from refunds.models import Agent, Operation, Order, Person

_calls = itertools.count(1)


def order(
    ref: str = "4821",
    *,
    account: str = "plain-main",
    captured_minor: int = 12900,
    currency: str = "USD",
    payment_ref: str | None = None,
    customer_ref: str | None = None,
    state: str = "captured",
    **facts: Any,
) -> Order:
    """Feed one order with one payment `pi_<ref>` captured nine days ago."""
    snapshot = feed.OrderSnapshot(
        ref=ref,
        currency=currency,
        customer_ref=f"cus_{ref}" if customer_ref is None else customer_ref,
        facts_as_of=timezone.now(),
        payments=(
            feed.PaymentSnapshot(
                ref=payment_ref or f"pi_{ref}",
                provider_account=account,
                state=state,
                captured_minor=captured_minor,
                captured_at=timezone.now() - timedelta(days=9),
            ),
        ),
        **facts,
    )
    return feed.upsert(snapshot, by="shop").order


def external_refund(
    order_ref: str, amount_minor: int, *, ref: str = "rf_outside", payment_ref: str | None = None
) -> Order:
    """Feed a refund that somebody made elsewhere: the order's version moves."""
    known = Order.objects.get(ref=order_ref)
    snapshot = feed.OrderSnapshot(
        ref=order_ref,
        currency=known.currency,
        facts_as_of=timezone.now(),
        external_refunds=(
            feed.ExternalRefund(
                payment_ref=payment_ref or f"pi_{order_ref}",
                provider_refund_ref=ref,
                amount_minor=amount_minor,
                provider_status="succeeded",
            ),
        ),
    )
    return feed.upsert(snapshot, by="shop").order


def request(
    order_ref: str = "4821", amount_minor: int = 7900, **more: Any
) -> intake.ProposalRequest:
    """A proposal request with a tool call id of its own."""
    values: dict[str, Any] = {
        "session_id": "chat-8812",
        "tool_call_id": f"call_{next(_calls)}",
        "order_ref": order_ref,
        "amount_minor": amount_minor,
        "currency": "USD",
        "reason_code": "damaged_item",
        "reason_text": "headphones arrived broken",
        "requested_by_kind": "customer",
        "requested_by_ref": "cus_204",
    }
    return intake.ProposalRequest(**(values | more))


def proposed(
    by: Agent | Person, order_ref: str = "4821", amount_minor: int = 7900, **more: Any
) -> Operation:
    """A stored proposal of an agent or a person."""
    caller = intake.Caller(agent=by) if isinstance(by, Agent) else intake.Caller(person=by)
    return intake.propose(request(order_ref, amount_minor, **more), caller).operation


def shown(operation: Operation, *, tick: bool = False) -> Shown:
    """What an approver's screen showed just now."""
    fresh = Operation.objects.select_related("order").get(pk=operation.pk)
    return Shown(
        fingerprint=bytes(fresh.fingerprint),
        order_version=fresh.order.version,
        siblings=siblings_of(fresh),
        separate_refund_confirmed=tick,
    )


def authorized(
    by: Agent | Person,
    *approvers: Person,
    order_ref: str = "4821",
    amount_minor: int = 7900,
    **more: Any,
) -> Operation:
    """A proposal that the approvers said yes to."""
    operation = proposed(by, order_ref, amount_minor, **more)
    for approver in approvers:
        approvals.approve(operation.pk, approver, shown(operation, tick=True))
    operation.refresh_from_db()
    return operation
