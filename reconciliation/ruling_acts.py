"""What a ruling in force does: moves the operation through the one door, and closes its case."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from reconciliation import late_truth, remedies, rulings
from reconciliation.absence import Absence
from reconciliation.cases import close_by_people
from reconciliation.choices import (
    ATTACH,
    CORRECT,
    EVENTS,
    HAPPENED,
    NOT_HAPPENED,
    NOT_OURS,
    RESUME,
    STILL_UNKNOWN,
    TITLES,
    Judged,
    Said,
    left_open,
)
from reconciliation.models import Case, Ruling
from reconciliation.ruling_books import book_different, book_happened, book_not_happened
from refunds import doorbell
from refunds.domain import states
from refunds.domain.outcome import RefundRecord
from refunds.ledger import Actor, Locked, mark_frozen, transition
from refunds.models import Operation, Order, Payment
from refunds.providers.base import instant


def carry_out(
    case: Case,
    ruling: Ruling,
    said: Said,
    judged: Judged,
    *,
    locked: Locked | None,
    order: Order | None,
    payment: Payment | None,
    absence: Absence,
) -> None:
    """Do what was ruled; every row is locked by the caller, and the ruling is in force."""
    by = Actor(states.OPERATORS, _signers(ruling))
    if said.choice in EVENTS:
        assert locked is not None, "only a case about an operation offers these"
        _move(locked, ruling, said, judged, by=by, absence=absence)
    elif said.choice == NOT_OURS and order is not None and not order.frozen:
        mark_frozen(order, frozen=True, by=by, reason=ruling.reason)
    elif said.choice == RESUME and locked is not None:
        Operation.objects.filter(pk=locked.operation.pk).update(
            failure_count=0, due_at=timezone.now()
        )
    elif said.choice == ATTACH:
        # The lookup decides whether it is so; a person only says where to look.
        Operation.objects.filter(pk=said.reference).update(due_at=timezone.now())
        doorbell.ring_lookup(said.reference)
    if said.choice == STILL_UNKNOWN:
        return
    _answered(case, ruling, said, payment)
    if locked is not None:
        _owes(locked, said, judged)


def _signers(ruling: Ruling) -> str:
    end = ruling.end
    names = [ruling.first_by.username]
    if end.by is not None and end.by.pk != ruling.first_by.pk:
        names.append(end.by.username)
    return ", ".join(f"person:{name}" for name in names)


def _move(
    locked: Locked,
    ruling: Ruling,
    said: Said,
    judged: Judged,
    *,
    by: Actor,
    absence: Absence,
) -> None:
    operation = locked.operation
    record = _record(said, judged, operation)
    if said.choice == HAPPENED:
        assert record is not None, "the judge takes no refund without its record"
        book_happened(locked, record)
    elif said.choice == NOT_HAPPENED:
        book_not_happened(locked, absence_id=absence.evidence_id, by=by)
    else:
        assert record is not None, "the judge takes no figure without its record"
        assert judged.amount_minor is not None, "the judge says what counts"
        book_different(
            locked,
            ref=record.ref,
            amount_minor=judged.amount_minor,
            provider_status=record.provider_status,
            created_at=record.created_at,
            by=by,
        )
    # An end by a ruling goes on being looked at: people can be wrong in good faith.
    later = timezone.now() + timedelta(seconds=settings.LIMITS.lookup_with_case_seconds)
    detail: dict[str, object] = {
        "ruling": ruling.pk,
        "because": ruling.reason,
        "ref": record.ref if record else None,
    }
    proved = said.choice == NOT_HAPPENED
    if proved and absence.accepted:
        detail["accepted"] = list(absence.accepted)
    transition(
        operation,
        EVENTS[said.choice],
        by=by,
        sets={"due_at": later, "lookup_applied": operation.lookup_started},
        detail=detail,
        evidence_id=absence.evidence_id if proved else None,
    )


def _record(said: Said, judged: Judged, operation: Operation) -> RefundRecord | None:
    told, seen = said.testimony, judged.seen
    if seen is not None:
        return RefundRecord(
            ref=seen.ref,
            payment_ref=operation.payment.ref,
            amount_minor=seen.amount_minor,
            currency=seen.currency,
            provider_status=seen.provider_status,
            marker=None,
            created_at=None,
        )
    if told is not None:
        return RefundRecord(
            ref=told.ref,
            payment_ref=operation.payment.ref,
            amount_minor=told.amount_minor,
            currency=told.currency,
            provider_status=told.provider_status,
            marker=None,
            created_at=instant(told.created),
        )
    return None


def _answered(case: Case, ruling: Ruling, said: Said, payment: Payment | None) -> None:
    left = left_open(tuple(case.reasons), said.choice)
    because = f"{TITLES[said.choice]}: {ruling.reason}"
    if left:
        Case.objects.filter(pk=case.pk).update(reasons=list(left))
        case.reasons = list(left)
        return
    close_by_people(case, payment, because)
    rulings.step(case, "closed", by=None, ruling=ruling.pk)


def _owes(locked: Locked, said: Said, judged: Judged) -> None:
    """The customer still expects what did not leave."""
    asked_minor = locked.operation.amount_minor
    if said.choice == NOT_HAPPENED:
        remedies.owe(locked, asked_minor, "People ruled that the refund did not happen.")
    elif said.choice in EVENTS and judged.amount_minor is not None:
        short_minor = asked_minor - judged.amount_minor
        if short_minor < 0:
            late_truth.stop_remedies(locked, "A larger refund left than was asked for.")
        elif short_minor > 0 and said.choice == CORRECT:
            remedies.owe(locked, short_minor, "A smaller refund left than was asked for.")
