"""Rulings that wait for a second person: which one does, and how one ends without being signed."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from reconciliation.models import Case, CaseEvent, Ruling, RulingEnd
from reconciliation.models.case_work import MOVES_VERSION
from refunds.models import Person

MACHINE = "reconciler"


def step(
    case: Case,
    kind: str,
    *,
    by: Person | None,
    intent: UUID | None = None,
    **detail: object,
) -> CaseEvent:
    """One line of the case's history. Whatever changes what others may do also moves its version;
    the caller holds the case's row and saves its other columns."""
    if kind in MOVES_VERSION:
        case.version += 1
        Case.objects.filter(pk=case.pk).update(version=case.version)
    return CaseEvent.objects.create(
        case=case,
        kind=kind,
        actor=f"person:{by.username}" if by else MACHINE,
        person=by,
        intent=intent,
        detail=detail,
    )


def waiting(case: Case) -> Ruling | None:
    """The ruling of this case that a second person has not signed yet."""
    return (
        Ruling.objects.select_related("first_by")
        .filter(case=case, end__isnull=True)
        .order_by("-pk")
        .first()
    )


def void_waiting(case: Case, because: str) -> bool:
    """End the waiting ruling because the evidence moved; the case's row is locked."""
    found = waiting(case)
    if found is None:
        return False
    end(found, "voided", because=because)
    return True


def end(
    ruling: Ruling,
    outcome: str,
    *,
    by: Person | None = None,
    because: str = "",
    intent: UUID | None = None,
) -> None:
    """Write how a ruling ended, and the step of the case that says so."""
    RulingEnd.objects.create(
        ruling=ruling, outcome=outcome, by=by, because=because[:500], intent=intent
    )
    kind = "signed" if outcome == "in_force" else outcome
    step(ruling.case, kind, by=by, intent=intent, ruling=ruling.pk, because=because[:500])


def lapse(now: datetime, *, batch_max: int) -> int:
    """End the rulings that nobody signed in time: their cases wait for a person again."""
    late = Ruling.objects.filter(end__isnull=True, lapses_at__lte=now).values_list("pk", "case_id")
    ended = 0
    for ruling_id, case_id in list(late[:batch_max]):
        with transaction.atomic():
            case = Case.objects.select_for_update().get(pk=case_id)
            found = waiting(case)
            if found is None or found.pk != ruling_id:
                continue
            found.case = case
            end(found, "lapsed", because="Nobody gave the second signature in time.")
            ended += 1
    return ended
