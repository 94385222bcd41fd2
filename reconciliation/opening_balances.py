"""What an account had refunded before this installation began: counted, and nobody's work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from reconciliation import outside
from refunds.domain import states
from refunds.ledger import Actor, bump
from refunds.ledger.external import learn_shown, lock_payments
from refunds.models import Payment
from refunds.providers.account_list import ListedRefund
from refunds.providers.base import Account
from refunds.providers.listing import read_account


class ListUnreadable(Exception):
    """The account's list was not read to its end; the message says why."""


@dataclass(slots=True)
class Opening:
    """How many refunds were counted anew, known already, ours, or of payments that nobody fed."""

    counted: int = 0
    known: int = 0
    ours: int = 0
    unfed: int = 0


def count_from(account: Account, since: datetime, by: str) -> Opening:
    """Read the account's refunds made at `since` or later to the end, and count them without a case.

    Raises ListUnreadable; what was counted until then stays, and counting it again changes nothing.
    """
    assert not transaction.get_connection().in_atomic_block, "no call inside a transaction"
    opening, cursor = Opening(), ""
    seen: set[str] = set()
    while True:
        page = read_account(
            account,
            "refunds",
            since,
            cursor,
            total_seconds=settings.LIMITS.call_total_seconds,
            body_bytes_max=settings.LIMITS.list_bytes_max,
        )
        if not page.readable:
            raise ListUnreadable(page.because)
        for listed in page.refunds:
            _count(account.name, listed, by, opening)
        if page.next_cursor is None:
            return opening
        if page.next_cursor in seen:
            raise ListUnreadable("the list's cursor goes round in a circle")
        seen.add(page.next_cursor)
        cursor = page.next_cursor


def _count(account: str, listed: ListedRefund, by: str, opening: Opening) -> None:
    if outside.operation_of(account, listed) is not None:
        opening.ours += 1
        return
    payment = outside.payment_of(account, listed.payment_refs)
    record = listed.record
    if payment is None or record.amount_minor is None or record.currency != payment.currency:
        opening.unfed += 1
        return
    with transaction.atomic():
        counted = _learned(payment, listed, by)
    opening.counted += counted
    opening.known += not counted


def _learned(payment: Payment, listed: ListedRefund, by: str) -> bool:
    """Whether the payment's refunded sum moved by it."""
    record = listed.record
    [locked] = lock_payments(payment).values()
    learned = learn_shown(locked, record)
    if learned.changed:
        bump(
            locked.order,
            "external",
            by=Actor(states.OPERATORS, f"person:{by}"),
            amount_minor=learned.after_minor,
            detail={"ref": record.ref, "external": [record.ref], "payment": locked.ref},
        )
    return learned.changed
