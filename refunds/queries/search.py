"""Finding an operation, an order or a payment by any of its identifiers, by indexes alone, and
the newest operations also by what pages print of an id and by their ticket.

No text of people or agents is searched: a reason, a fact or a claim has no index, and a scan of
them would be a scan of the ledger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q, QuerySet

from refunds.domain.wish import wish_called
from refunds.models import Operation, Order, Payment, ProviderAccount, ProviderRefund

TEXT_LENGTH_MAX = 320  # of the longest identifier, a business key
GROUP_ROWS_MAX = 20
# Eight hex digits of a UUIDv7 are its first minute or so: enough to be a prefix, not a list.
_ID_DIGITS_MIN, _ID_DIGITS = 8, 32
# Tickets and parts of ids have no index (the table of operations keeps five): they are looked
# for among the newest refunds only.
SCANNED_MAX = 10_000
_PART_OF_AN_ID = re.compile(r"[0-9a-f-]{6,36}", re.ASCII)

type Hit = Operation | Order | Payment


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one text led to.

    `exact` is the one thing that the whole text names, if it names exactly one; otherwise each
    group holds what begins with it, newest first, at most `GROUP_ROWS_MAX` of each.
    """

    exact: Hit | None = None
    operations: list[Operation] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    payments: list[Payment] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.exact or self.operations or self.orders or self.payments)


def find(text: str) -> Found:
    """What `text` names as a whole, else what begins with it; nothing for a text that no
    identifier can be (empty, too long, or with control characters)."""
    text = text.strip()
    if not _may_be_an_identifier(text):
        return Found()
    named = _named(text)
    if len(named) == 1:
        return Found(exact=named[0])
    orders = list(orders_like(text)[:GROUP_ROWS_MAX])
    return Found(
        operations=_operations(text, orders, named),
        orders=orders,
        payments=list(_payments().filter(ref__startswith=text).order_by("ref")[:GROUP_ROWS_MAX]),
    )


def orders_like(text: str) -> QuerySet[Order]:
    """Orders whose reference begins with `text`, or of the customer with exactly this reference;
    newest first. Nothing for a text that no identifier can be."""
    text = text.strip()
    if not _may_be_an_identifier(text):
        return Order.objects.none()
    return Order.objects.filter(Q(ref__startswith=text) | Q(customer_ref=text)).order_by("-pk")


def newest_meant(text: str) -> QuerySet[Operation]:
    """Among the newest `SCANNED_MAX` operations those with this ticket, or with this part of an
    id: its beginning or its end, six characters or more, also as pages print it ("op …4f2a91")."""
    text = text.strip()
    if not _may_be_an_identifier(text):
        return Operation.objects.none()
    meant = Q(ticket_ref=text)
    shown = text.removeprefix("op ").lstrip("…. ").lower()
    if _PART_OF_AN_ID.fullmatch(shown):
        meant |= Q(pk__istartswith=shown) | Q(pk__iendswith=shown)
    newest = Operation.objects.order_by("-pk").values("pk")[:SCANNED_MAX]
    return Operation.objects.filter(meant, pk__in=newest)


def _may_be_an_identifier(text: str) -> bool:
    return 0 < len(text) <= TEXT_LENGTH_MAX and text.isprintable()


def _named(text: str) -> list[Hit]:
    """Everything that has exactly this identifier: one order may be called like a payment."""
    named: list[Hit] = [*_operations_called(text)]
    named += Order.objects.filter(ref=text)
    named += _payments().filter(ref=text)[:GROUP_ROWS_MAX]
    # The accounts are the leading half of that index.
    accounts = ProviderAccount.objects.values_list("name", flat=True)
    refunds = ProviderRefund.objects.filter(provider_account__in=[*accounts], ref=text)
    for refund in refunds.select_related("operation", "payment__order")[:GROUP_ROWS_MAX]:
        named.append(refund.operation or refund.payment)
    return list({(type(each), each.pk): each for each in named}.values())


def _operations_called(text: str) -> QuerySet[Operation]:
    identity, wish = _uuid(text), wish_called(text)
    if identity:
        return _operations_shown().filter(pk=identity)
    if wish is None:
        return Operation.objects.none()
    return _operations_shown().filter(order__ref=wish[0], request_ref=wish[1], business_key=text)


def _operations(text: str, orders: list[Order], named: list[Hit]) -> list[Operation]:
    exact = [each for each in named if isinstance(each, Operation)]
    begun = _ids_that_begin_with(text)
    known = Q(order__in=[order.pk for order in orders])
    if begun is not None:
        known |= Q(pk__range=begun)
    rows = _operations_shown().filter(known).order_by("-pk")[:GROUP_ROWS_MAX]
    meant = newest_meant(text).values_list("pk", flat=True).order_by("-pk")[:GROUP_ROWS_MAX]
    printed = _operations_shown().filter(pk__in=list(meant)).order_by("-pk")
    return list({each.pk: each for each in [*exact, *printed, *rows]}.values())


def _operations_shown() -> QuerySet[Operation]:
    return Operation.objects.select_related("order", "payment", "agent", "proposer").defer("body")


def _payments() -> QuerySet[Payment]:
    return Payment.objects.select_related("order")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _ids_that_begin_with(text: str) -> tuple[UUID, UUID] | None:
    """The first and last id that begin with these hex digits; None where they are none, or few."""
    digits = text.replace("-", "").lower()
    if not _ID_DIGITS_MIN <= len(digits) < _ID_DIGITS or set(digits) - set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(_ID_DIGITS, "0")), UUID(digits.ljust(_ID_DIGITS, "f"))
