"""Making good for a refund that did not reach the customer: how much is owed, and by which refund.

A remedy is a refund of its own, with its own key and its own approval; `remedy_of` names the one
that it stands in for, and never changes.
"""

from __future__ import annotations

from django.db.models import Sum

from refunds import intake_refusals as refusals
from refunds.domain import states
from refunds.models import Operation, Order, Payment, ProviderRefund
from refunds.proposal import ProposalRequest

# Ended without the money that was asked for; of a mismatched one only what is missing is owed.
OWES = frozenset({states.FAILED, states.RETURNED, states.MISMATCHED})


def owed_minor(first: Operation) -> int:
    """What the customer still expects of it, in minor units: less what its remedies have paid.

    Of a remedy no more than of the refund that it makes good for, which may have turned up.
    """
    if first.state not in OWES:
        return 0
    owed = max(0, first.amount_minor - sum(map(_paid, [first, *that_paid(first)])))
    return owed if first.remedy_of is None else min(owed, owed_minor(first.remedy_of))


def made_good_by(first: Operation) -> list[Operation]:
    """By which refunds the customer got all of it; none while anything is owed, or may be."""
    if first.state not in OWES or owed_minor(first) > 0:
        return []
    above = first.remedy_of
    return [*([above] if above is not None and _paid(above) else []), *that_paid(first)]


def open_remedies(first: Operation) -> list[Operation]:
    """Those of its remedies that have not ended, the oldest first."""
    return list(first.remedies.exclude(state__in=states.ENDED).order_by("pk"))


def may_make_good(first: Operation) -> list[Operation]:
    """What may still reach the customer in its place: its open remedies, and the refund that it
    makes good for itself, where that turned up."""
    above = first.remedy_of
    turned_up = above is not None and above.state not in states.ENDED
    return [*([above] if above is not None and turned_up else []), *open_remedies(first)]


def that_paid(first: Operation) -> list[Operation]:
    """Those of its remedies that moved money, the oldest first."""
    paid = [states.SUCCEEDED, states.MISMATCHED]
    return list(first.remedies.filter(state__in=paid).order_by("pk"))


def left_to_propose_minor(first: Operation) -> int:
    """What no remedy stands for yet: neither one that paid nor one that is on its way."""
    return max(0, owed_minor(first) - _under_way_minor(first))


def is_overdone(first: Operation) -> bool:
    """Whether more is on its way than is owed: a remedy was given up for another, and turned up."""
    return _under_way_minor(first) > owed_minor(first)


def _under_way_minor(first: Operation) -> int:
    return sum(each.amount_minor for each in open_remedies(first))


def _paid(operation: Operation) -> int:
    if operation.state == states.SUCCEEDED:
        return operation.amount_minor
    if operation.state != states.MISMATCHED:
        return 0
    counted = ProviderRefund.objects.filter(operation=operation, counts=True)
    return counted.aggregate(total=Sum("amount_minor"))["total"] or 0


def first_of(request: ProposalRequest, order: Order, payment: Payment) -> Operation | None:
    """The refund that this one is to make good for; None where it is no remedy.

    The order's row is locked by the caller: no refund of the order ends or turns up meanwhile.
    Raises Refusal remedy_unknown, remedy_not_owed or remedy_too_large (422).
    """
    if request.remedy_of is None:
        return None
    first = Operation.objects.filter(order=order, pk=request.remedy_of).first()
    if first is None:
        raise refusals.remedy_unknown(order.ref)
    left_minor = left_to_propose_minor(first)
    if left_minor <= 0 or first.currency != payment.currency:
        stands_for_it = open_remedies(first) if first.state in OWES else []
        raise refusals.remedy_not_owed(first, stands_for_it)
    if request.amount_minor > left_minor:
        raise refusals.remedy_too_large(first, left_minor)
    return first


def accounts_for(first: Operation | None, done: Operation) -> bool:
    """Whether an equal refund that ended is known to have paid less than is still owed.

    So it is with the refund that is made good for, and with its remedies: what is owed was counted
    with them.
    """
    return first is not None and first.pk in (done.pk, done.remedy_of_id)
