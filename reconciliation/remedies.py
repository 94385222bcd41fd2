"""Money still owed: a refund that ended without reaching the customer waits for another way."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from reconciliation.cases import open_case
from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.money import display
from refunds.ledger import Locked, lock
from refunds.models import Event, Operation

# An end that old without a remedy was looked at by every sweep since.
_LOOK_BACK = timedelta(days=35)
_BECAUSE = {
    states.FAILED: "The refund failed and no money left.",
    states.RETURNED: "The money of the refund came back.",
}


def owe(locked: Locked, amount_minor: int, why: str) -> Case:
    """Open the case that asks how the customer gets the money; the rows are locked by the caller."""
    amount = display(amount_minor, locked.operation.currency)
    return open_case(locked, "remedy", f"{why} The customer still expects {amount}.")


def owe_for_ended(now: datetime, *, batch_max: int) -> int:
    """Open one for every operation that ended without money and has none; returns how many.

    A refund that another one already makes good for (`remedy_of`) owes nothing any more.
    """
    asked = Case.objects.filter(operation=OuterRef("operation_id"), reasons__contains=["remedy"])
    ended = (
        Event.objects.filter(at__gte=now - _LOOK_BACK, to_state__in=sorted(_BECAUSE))
        .filter(~Exists(asked.filter(Q(closed_at=None) | Q(closed_at__gte=OuterRef("at")))))
        .order_by("at")
        .values_list("operation_id", "to_state")
    )
    opened = 0
    for operation_id, state in list(ended[:batch_max]):
        with transaction.atomic():
            locked = lock(operation_id)
            if locked.operation.state != state or _asked_already(locked.operation):
                continue
            owe(locked, locked.operation.amount_minor, _BECAUSE[state])
            opened += 1
    return opened


def _asked_already(operation: Operation) -> bool:
    cases = Case.objects.filter(operation=operation, reasons__contains=["remedy"])
    # By when it was closed: one may have been opened in the very transaction that ended it.
    return cases.filter(Q(closed_at=None) | Q(closed_at__gte=operation.entered_at)).exists()
