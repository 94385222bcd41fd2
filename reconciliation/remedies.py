"""Money still owed: a refund that ended without reaching the customer waits for another way."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from reconciliation import cases
from reconciliation.cases import open_case
from reconciliation.models import Case
from refunds import intake, making_good
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.money import display
from refunds.intake import Caller, ProposalRequest, Proposed
from refunds.ledger import Locked, lock
from refunds.models import Event, Operation

# An end that old without a remedy was looked at by every sweep since.
_LOOK_BACK = timedelta(days=35)
_BECAUSE = {
    states.FAILED: "The refund failed and no money left.",
    states.RETURNED: "The money of the refund came back.",
}


def owe(locked: Locked, amount_minor: int, why: str) -> None:
    """Open the case that asks how the customer gets the money; the rows are locked by the caller.

    Of a remedy whose first refund is asked about, that case asks for all that is missing: a second
    one would have the same money paid twice.
    """
    operation = locked.operation
    if operation.remedy_of_id is not None and _asking(operation.remedy_of_id).exists():
        return
    amount = display(amount_minor, operation.currency)
    open_case(locked, "remedy", f"{why} The customer still expects {amount}.")


def owe_for_ended(now: datetime, *, batch_max: int) -> int:
    """Open one for every operation that ended without money and has none; returns how many.

    A remedy that ended so while the case of its first refund was open owes nothing of its own.
    """
    ended = (
        # Its state still: what moved on since would stand in the way of later ones.
        Event.objects.filter(
            at__gte=now - _LOOK_BACK, to_state__in=sorted(_BECAUSE), operation__state=F("to_state")
        )
        .filter(~Exists(_asked_since(OuterRef("at"), operation=OuterRef("operation_id"))))
        .filter(~Exists(_asked_since(OuterRef("at"), operation=OuterRef("operation__remedy_of"))))
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
    about = [each for each in (operation.pk, operation.remedy_of_id) if each is not None]
    return _asked_since(operation.entered_at, operation__in=about).exists()


def _asked_since(at: object, **about: object) -> QuerySet[Case]:
    """The case that asks how the customer gets the money, by when it was closed: one may have been
    opened in the very transaction that ended the refund."""
    asked = Case.objects.filter(**about, reasons__contains=["remedy"])
    return asked.filter(Q(closed_at=None) | Q(closed_at__gte=at))


def _asking(operation_id: UUID) -> QuerySet[Case]:
    return Case.objects.filter(operation=operation_id, closed_at=None, reasons__contains=["remedy"])


def is_asked(first: Operation) -> bool:
    """Whether the case about the money of this refund is open."""
    return _asking(first.pk).exists()


def propose(request: ProposalRequest, caller: Caller) -> Proposed:
    """Propose a refund that makes good for `request.remedy_of`, through the intake of every other.

    The case stays open until the remedy has paid: it may be refused, rejected or fail. Call inside
    a transaction. Raises Refusal: those of the intake, remedy_unknown and remedy_not_owed (422).
    """
    first_id: UUID | None = request.remedy_of
    assert first_id is not None, "a remedy names the refund that it makes good for"
    first = Operation.objects.filter(pk=first_id, order__ref=request.order_ref).first()
    if first is not None:
        # What people choose instead is recorded under the same locks.
        first = lock(first_id).operation
        if not is_asked(first):
            raise nothing_asked(first)
    return intake.propose(request, caller)


def nothing_asked(first: Operation) -> Refusal:
    """422: no case asks for the money of this refund, or none does any more."""
    return Refusal(
        "remedy_not_owed",
        f"Not recorded. No money is recorded as owed for {first.business_key}: it is"
        f" {first.state}, and no open case asks how the customer gets it.",
        what_to_do="Look at its page for how the customer was paid, or will be.",
        field="remedy_of",
        operation_id=first.pk,
    )


def close_made_good(*, batch_max: int) -> int:
    """Close the cases whose money has arrived by another refund; returns how many."""
    moved = Operation.objects.filter(state__in=[states.SUCCEEDED, states.MISMATCHED])
    by_remedy = Exists(moved.filter(remedy_of=OuterRef("operation_id")))
    turned_up = Exists(moved.filter(pk=OuterRef("operation__remedy_of")))
    waiting = Case.objects.filter(by_remedy | turned_up, closed_at=None, reasons=["remedy"])
    found = list(waiting.order_by("pk").values_list("operation_id", flat=True)[:batch_max])
    return sum(_close_made_good(operation_id) for operation_id in found if operation_id)


def _close_made_good(operation_id: UUID) -> bool:
    with transaction.atomic():
        first = lock(operation_id).operation
        case = _asking(first.pk).select_for_update().first()
        if case is None or case.reasons != ["remedy"]:
            return False
        keys = ", ".join(each.business_key for each in making_good.made_good_by(first))
        if not keys:
            return False
        cases.close_made_good(case, f"The customer got it by another refund: {keys}.")
        return True
