"""Refunds that another system left stuck, from a file, one row each."""

from __future__ import annotations

from enum import Enum, auto

from refunds import doorbell
from refunds.ledger.adoption import Stuck, adopt
from refunds.management.csv_rows import (
    Row,
    Wrong,
    account_cell,
    currency_cell,
    instant_cell,
    minor_cell,
    text_cell,
)
from refunds.models import Operation, Payment, Person

COLUMNS = (
    "source_ref",
    "provider_account",
    "payment_ref",
    "amount_minor",
    "currency",
    "requested_at",
    "provider_refund_ref",
)


class Taken(Enum):
    """What a row turned out to be."""

    NEW = auto()
    KNOWN = auto()


def take(row: Row, by: Person) -> Taken:
    """Take one row over; call in a transaction. Raises Wrong, or Refusal of the ledger.

    It is looked up at once: by the provider's reference where the row has one, else it becomes a
    case in which a person chooses among what the provider shows.
    """
    stuck = _read(row)
    before = Operation.objects.filter(
        order=stuck.payment.order_id, request_ref=stuck.source_ref
    ).exists()
    operation = adopt(stuck, by)
    if before:
        return Taken.KNOWN
    doorbell.ring_lookup(operation.pk)
    return Taken.NEW


def _read(row: Row) -> Stuck:
    row.require_whole()
    account = account_cell(row)
    ref = text_cell(row, "payment_ref")
    payment = Payment.objects.filter(provider_account=account, ref=ref).first()
    if payment is None:
        raise Wrong("payment_ref", f"no payment {ref} of {account} is known; feed its order first")
    requested_at = instant_cell(row, "requested_at")
    assert requested_at is not None, "the cell is needed"
    return Stuck(
        payment=payment,
        amount_minor=minor_cell(row, "amount_minor"),
        currency=currency_cell(row),
        source_ref=text_cell(row, "source_ref"),
        requested_at=requested_at,
        provider_refund_ref=text_cell(row, "provider_refund_ref", needed=False),
    )
