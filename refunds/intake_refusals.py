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


def remedy_unknown(order_ref: str) -> Refusal:
    """422: what is to be made good for is no refund of this order."""
    return Refusal(
        "remedy_unknown",
        f"Not recorded. Order {order_ref} has no such refund to make good for.",
        what_to_do="Open the refund whose money is owed, and propose from there.",
        field="remedy_of",
    )


def remedy_not_owed(first: Operation, open_ones: list[Operation]) -> Refusal:
    """422: nothing is owed for the first refund, or another refund makes good for it already."""
    if open_ones:
        return Refusal(
            "remedy_not_owed",
            f"Not recorded. {open_ones[0].business_key} is proposed already to make good for"
            f" {first.business_key}, and has not ended.",
            what_to_do="Follow that one. If it ends without money, this can be proposed again.",
            field="remedy_of",
            operation_id=open_ones[0].pk,
        )
    return Refusal(
        "remedy_not_owed",
        f"Not recorded. No money is owed for {first.business_key}: it is {first.state}.",
        what_to_do="A refund of its own can be proposed on the order's page.",
        field="remedy_of",
        operation_id=first.pk,
    )


def remedy_too_large(first: Operation, left_minor: int) -> Refusal:
    """422: more than the customer still expects of the first refund."""
    return Refusal(
        "remedy_too_large",
        f"Not recorded. {money.display(left_minor, first.currency)} are owed for"
        f" {first.business_key}, and no more.",
        what_to_do="Propose that or less. What is due besides is a refund of its own.",
        field="amount",
        operation_id=first.pk,
    )
