"""Reads of the order pages: what an order's payments hold and why, and how it came to that.

The number of queries never grows with the rows, and each list has its own limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, Prefetch, Q, QuerySet, Sum

from refunds.domain import states
from refunds.models import Evidence, Operation, Order, OrderMove, Payment, ProviderRefund
from refunds.queries import results, search

OPERATIONS_MAX = 50
MOVES_MAX = 50


def listed(text: str = "") -> QuerySet[Order]:
    """Orders, newest first: all of them, or those that a reader may mean by `text`.

    Meant are an order or payment by the beginning of its reference, a customer by their whole
    reference, and among the newest refunds one by its ticket or a part of its id
    (its beginning or its end, six characters or more).
    """
    text = text.strip()
    if not text:
        return Order.objects.order_by("-pk")
    if len(text) > search.TEXT_LENGTH_MAX or not text.isprintable():
        return Order.objects.none()
    payments = Payment.objects.filter(ref__startswith=text).values("order_id")
    operations = search.newest_meant(text).values("order_id")
    return Order.objects.filter(
        Q(ref__startswith=text) | Q(customer_ref=text) | Q(pk__in=payments) | Q(pk__in=operations)
    ).order_by("-pk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a row of the list shows besides its order; amounts in minor units by currency."""

    refundable_minor: dict[str, int]
    refund_count: int
    uncertain_count: int
    waiting_count: int


def beside(orders: Iterable[Order]) -> dict[int, Beside]:
    """The same few sums for each order, in two queries."""
    ids = [order.pk for order in orders]
    available = F("captured_minor") - F("refunded_minor") - F("held_minor")
    room: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    for row in (
        Payment.objects.filter(order__in=ids)
        .values("order_id", "currency")
        .annotate(room=Sum(available))
    ):
        room[row["order_id"]][row["currency"]] = row["room"]
    counts = (
        Operation.objects.filter(order__in=ids)
        .values_list("order_id")
        .annotate(
            refunds=Count("pk"),
            uncertain=Count("pk", filter=Q(state__in=states.UNCERTAIN)),
            waiting=Count("pk", filter=Q(state=states.AWAITING_APPROVAL)),
        )
    )
    known = {pk: (refunds, uncertain, waiting) for pk, refunds, uncertain, waiting in counts}
    found = {}
    for pk in ids:
        refunds, uncertain, waiting = known.get(pk, (0, 0, 0))
        found[pk] = Beside(
            refundable_minor=room[pk],
            refund_count=refunds,
            uncertain_count=uncertain,
            waiting_count=waiting,
        )
    return found


def known(ref: str) -> Order | None:
    """The order of this reference with its payments, or None."""
    if "\0" in ref:  # PostgreSQL has no NUL in its texts; an address may.
        return None
    return (
        Order.objects.prefetch_related(Prefetch("payments", Payment.objects.order_by("pk")))
        .filter(ref=ref)
        .first()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What the operations of one payment and state come to; `held`: they set it aside."""

    payment_id: int
    state: str
    held: bool
    amount_minor: int
    count: int


def committed(order: Order) -> list[Committed]:
    """The operations of the order that wait, hold money or may have moved it."""
    open_states = [states.AWAITING_APPROVAL, states.AUTHORIZED, *states.UNCERTAIN]
    rows = (
        Operation.objects.filter(order=order, state__in=open_states)
        .values("payment_id", "state", "reservation__state")
        .annotate(amount=Sum("amount_minor"), count=Count("pk"))
        .order_by("payment_id", "state", "reservation__state")
    )
    return [
        Committed(
            payment_id=row["payment_id"],
            state=row["state"],
            held=row["reservation__state"] == "held",
            amount_minor=row["amount"],
            count=row["count"],
        )
        for row in rows
    ]


def uncertain(order: Order, payment_id: int) -> Operation | None:
    """The oldest operation of a payment whose money may have moved, or None."""
    return (
        Operation.objects.filter(order=order, payment_id=payment_id, state__in=states.UNCERTAIN)
        .order_by("pk")
        .first()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page of a list, newest first, and whether older rows were left out."""

    operations: list[Operation]
    more: bool


def operations(
    order: Order,
    *,
    payment_id: int | None = None,
    in_states: Collection[str] | None = None,
    before: UUID | None = None,
) -> Part:
    """Operations of the order, newest first, with all that their sentence and words look at."""
    rows = (
        results.readable()
        .select_related("agent_owner", "reservation")
        .defer("body")
        .filter(order=order)
        .order_by("-pk")
    )
    if payment_id is not None:
        rows = rows.filter(payment_id=payment_id)
    if in_states is not None:
        rows = rows.filter(state__in=in_states)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: OPERATIONS_MAX + 1])
    return Part(operations=found[:OPERATIONS_MAX], more=len(found) > OPERATIONS_MAX)


def last_lookups(ids: Iterable[UUID]) -> dict[UUID, Evidence]:
    """The newest lookup of each operation, without its raw bytes."""
    newest = (
        Evidence.objects.filter(operation__in=list(ids), kind="lookup")
        .defer("body")
        .order_by("operation_id", "-pk")
        .distinct("operation_id")
    )
    return {each.operation_id: each for each in newest if each.operation_id is not None}


def elsewhere(order: Order) -> list[ProviderRefund]:
    """Refunds of the order that no operation of ours explains, newest first."""
    return list(
        ProviderRefund.objects.filter(payment__order=order, operation=None)
        .select_related("payment")
        .order_by("-pk")[:OPERATIONS_MAX]
    )


def moves(order: Order, *, before: int | None = None) -> tuple[list[OrderMove], bool]:
    """Versions of the order, newest first, and whether there are older ones."""
    rows = OrderMove.objects.filter(order=order).select_related("operation").order_by("-version")
    if before is not None:
        rows = rows.filter(version__lt=before)
    found = list(rows[: MOVES_MAX + 1])
    return found[:MOVES_MAX], len(found) > MOVES_MAX
