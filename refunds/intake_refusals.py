"""What intake refuses, in words that say what was met and what to do next. Nothing is recorded."""

from __future__ import annotations

from refunds.domain import money, sameness
from refunds.domain.errors import Refusal
from refunds.models import Operation
from refunds.proposal import ProposalRequest


def call_reused(request: ProposalRequest, known: Operation) -> Refusal:
    """409: this very call asked for something else before, which `known` stands for."""
    return Refusal(
        sameness.SAME_CALL.code,
        f"Call {request.tool_call_id} of this session asked for something else before:"
        f" {_wished(known)}. What this one asks for was not recorded"
        f"{_only_the_reason(request, known)}.",
        status=409,
        what_to_do="If this is another refund, propose it as a new call, with a tool_call_id that"
        " was never used. If the first one is meant, ask for its status.",
        field="tool_call_id",
        operation_id=known.pk,
    )


def wish_reused(request: ProposalRequest, known: Operation) -> Refusal:
    """409: the request_ref names another refund of this order."""
    return Refusal(
        sameness.SAME_WISH.code,
        f"{request.request_ref} names another refund: {_wished(known)}. What this call asks for"
        " was not recorded.",
        status=409,
        what_to_do="If this is another refund, propose it as a new call under another request_ref."
        " If the first one is meant, ask for its status.",
        field="request_ref",
        operation_id=known.pk,
    )


def name_taken(request: ProposalRequest) -> Refusal:
    """The same where the caller may not look at the other refund: no more than that."""
    return Refusal(
        sameness.SAME_WISH.code,
        f"{request.request_ref!r} names another refund of this order already. What this call asks"
        " for was not recorded.",
        status=409,
        what_to_do="If this is another refund, propose it as a new call under another request_ref.",
        field="request_ref",
    )


def _wished(operation: Operation) -> str:
    """ "79.00 USD of payment pi_4821, order 4821"."""
    amount = money.display(operation.amount_minor, operation.currency)
    return f"{amount} of payment {operation.payment.ref}, order {operation.order.ref}"


def _only_the_reason(request: ProposalRequest, known: Operation) -> str:
    """Where nothing that the sentence names differs, what does."""
    named = (request.order_ref, request.amount_minor, request.currency)
    same = named == (known.order.ref, known.amount_minor, known.currency)
    if not same or request.payment_ref not in (None, known.payment.ref):
        return ""
    return ": its reason_code is another"


def order_unknown(ref: str) -> Refusal:
    """422, also for an order of other accounts, which is answered like one that does not exist."""
    return Refusal(
        "order_unknown",
        f"There is no order {ref!r} that this caller may see.",
        what_to_do="Check the number with the customer. If it is right, tell a person: the shop's"
        " system feeds the orders, and an agent sees only those of its accounts.",
        field="order_ref",
    )


def payment_unknown(payment_ref: str, order_ref: str) -> Refusal:
    """422: the order has no such payment."""
    return Refusal(
        "payment_unknown",
        f"Order {order_ref} has no payment {payment_ref!r}.",
        what_to_do="Leave payment_ref out, or send one of the order's payments.",
        field="payment_ref",
    )


def payment_not_one(order_ref: str, count: int) -> Refusal:
    """422: several payments could be meant, or none is there."""
    return Refusal(
        "payment_ambiguous" if count else "payment_unknown",
        f"Order {order_ref} has {count} payments that could be meant.",
        what_to_do="Send payment_ref."
        if count
        else "Tell a person: the shop's system has fed no payment of this order.",
        field="payment_ref",
    )


def equivalent_unresolved(live: Operation, payment_ref: str) -> Refusal:
    """409: an equal refund of the payment has not ended."""
    return Refusal(
        sameness.OPEN_EQUIVALENT.code,
        f"An equal refund of payment {payment_ref} is not ended: {live.business_key} is"
        f" {live.state}.",
        status=409,
        what_to_do="Ask for the status of that operation. If a second equal refund is wanted,"
        " propose it with separate_from after the first has ended.",
        operation_id=live.pk,
    )


def separate_from_unknown(order_ref: str) -> Refusal:
    """422: the refund to be separate from is none of this order."""
    return Refusal(
        "separate_from_unknown",
        f"separate_from names no operation of order {order_ref}.",
        what_to_do="Send the operation_id of the refund this one is separate from.",
        field="separate_from",
    )
