"""What an ended operation's refund turned out to be: the books follow, people are told.

Every function runs in the transaction and under the locks of whoever decided.
"""

from __future__ import annotations

from uuid import UUID

from django.db import models

from reconciliation.cases import open_case
from reconciliation.matching import Finding
from reconciliation.remedies import owe
from refunds import making_good
from refunds.domain import states
from refunds.domain.outcome import RefundRecord
from refunds.ledger import RECONCILER, Locked, bump, lock
from refunds.ledger.external import count
from refunds.models import Operation, ProviderRefund, Reservation
from refunds.providers.base import StatusWords

_NOT_SENT = (states.PROPOSED, states.AWAITING_APPROVAL, states.AUTHORIZED)


def take_back(locked: Locked, record: RefundRecord) -> int:
    """The booked refund came back: it no longer counts, and the order moves; its amount, minor."""
    amount_minor = _take_out(
        locked, _counted(locked).filter(ref=record.ref), record.provider_status
    )
    Reservation.objects.filter(operation=locked.operation).update(state="released")
    bump(
        locked.order,
        "taken_back",
        by=RECONCILER,
        operation=locked.operation,
        amount_minor=amount_minor,
        detail={"ref": record.ref},
    )
    return amount_minor


def owe_what_came_back(locked: Locked, record: RefundRecord, amount_minor: int) -> None:
    """The customer still expects it: the case that asks how the money gets there."""
    owe(locked, amount_minor, f"The money of {record.ref} came back ({record.provider_status}).")


def take_out_ruled(locked: Locked, found: RefundRecord) -> None:
    """Nothing that people's word had counted counts any more; what was another's is another's.

    A refund that really left the payment is counted again by the account's own list.
    """
    _take_out(locked, _counted(locked))
    others = ProviderRefund.objects.filter(operation=locked.operation).exclude(ref=found.ref)
    others.update(operation=None, shown_at=None)


def follow_surplus(locked: Locked, finding: Finding, words: StatusWords) -> None:
    """Of an operation that was paid more than once, one has come back: the others still count."""
    if locked.operation.state != states.SUCCEEDED:
        return
    for each in finding.candidates:
        status = each.record.provider_status
        if not each.ours or status not in words.failed or _counted(locked).count() < 2:
            continue
        amount_minor = _take_out(locked, _counted(locked).filter(ref=each.record.ref), status)
        if amount_minor:
            bump(
                locked.order,
                "taken_back",
                by=RECONCILER,
                operation=locked.operation,
                amount_minor=amount_minor,
                detail={"ref": each.record.ref},
            )


def _counted(locked: Locked) -> models.QuerySet[ProviderRefund]:
    return ProviderRefund.objects.filter(operation=locked.operation, counts=True)


def _take_out(
    locked: Locked, rows: models.QuerySet[ProviderRefund], provider_status: str | None = None
) -> int:
    """These rows stop counting; returns how much that was, in minor units."""
    taken = list(rows)
    amount_minor = sum(each.amount_minor for each in taken)
    count(locked.payment, -amount_minor)
    sets = {"counts": False} | ({"provider_status": provider_status} if provider_status else {})
    ProviderRefund.objects.filter(pk__in=[each.pk for each in taken]).update(**sets)
    return amount_minor


def stop_remedies(locked: Locked, because: str) -> int:
    """The refund turned up after all: what was to pay in its place is not sent; returns how many.

    Halted before their claim, each with a case of its own. One that is out already is named by
    the case of the refund itself.
    """
    stopped = 0
    waiting = _in_its_place(locked.operation).filter(state__in=_NOT_SENT)
    for remedy_id in list(waiting.order_by("pk").values_list("pk", flat=True)):
        remedy = lock(remedy_id)
        if remedy.operation.state in _NOT_SENT:
            open_case(
                remedy,
                "contradiction",
                f"The refund that this one pays in place of turned up after all. {because}",
            )
            stopped += 1
    return stopped


def with_remedies_out(locked: Locked, because: str) -> str:
    """The words of the case, and which remedies may have moved money already."""
    out = _in_its_place(locked.operation).filter(
        state__in=[*states.UNCERTAIN, states.SUCCEEDED, states.MISMATCHED]
    )
    keys = ", ".join(out.order_by("pk").values_list("business_key", flat=True))
    return f"{because} What was to make good for it is out already: {keys}." if keys else because


def _in_its_place(operation: Operation) -> models.QuerySet[Operation]:
    """Refunds for the same money: those that make good for it, and for them in turn; and where it
    makes good for another itself, those beside it, once more is under way than is owed."""
    found: list[UUID] = []
    latest = [operation.pk]
    while latest:
        below = Operation.objects.filter(remedy_of__in=latest)
        latest = list(below.values_list("pk", flat=True))
        found += latest
    first = operation.remedy_of
    if first is not None and making_good.is_overdone(first):
        found += first.remedies.exclude(pk=operation.pk).values_list("pk", flat=True)
    return Operation.objects.filter(pk__in=found)
