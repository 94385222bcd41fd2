"""Writes the past in bulk, past every guard of the database.

Operations are written as they stood when they had been judged, and then moved one step at a time,
all together: the guards accept an approval only for what is waiting, and a move only by one.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

from reconciliation.models import Case, Ruling, RulingEnd
from refunds.models import (
    Approval,
    Attempt,
    Event,
    Evidence,
    Operation,
    Order,
    OrderMove,
    Payment,
    PolicyCheck,
    Proposal,
    ProviderAccount,
    ProviderRefund,
    Reservation,
)
from review.demo.past.rows import SESSION, Past, Rows

_JUDGED = 1  # the index of the step after which an operation is written
_MOVED = """
UPDATE operation o SET state = step.state, version = step.version, round = step.round,
  attempt_count = step.attempt_count
FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::int[], %s::int[])
  AS step (id, state, version, round, attempt_count)
WHERE o.id = step.id
"""


def is_written() -> bool:
    """Whether this database has its past already."""
    return Proposal.objects.filter(session_id=SESSION).exists()


def write(rows: Rows) -> None:
    """Store everything, or nothing."""
    with transaction.atomic():
        _orders(rows)
        _operations(rows.operations)
        Evidence.objects.bulk_create(rows.evidence)
        for event, evidence in rows.rests_on:
            event.evidence_id = evidence.pk
        _cases(rows)
        Event.objects.bulk_create(sorted(rows.events, key=lambda each: each.seq))
        OrderMove.objects.bulk_create(rows.moves)
        PolicyCheck.objects.bulk_create(rows.checks)
        Proposal.objects.bulk_create(rows.proposals)
        Attempt.objects.bulk_create(rows.attempts)
        Reservation.objects.bulk_create(
            past.reservation for past in rows.operations if past.reservation is not None
        )
        ProviderRefund.objects.bulk_create(rows.refunds)
        _move(rows.operations)


def _cases(rows: Rows) -> None:
    """A ruling is signed while its case is open, and the event that rests on it names it."""
    closed_at = {id(case): case.closed_at for case in rows.cases}
    for case in rows.cases:
        case.closed_at = None
    Case.objects.bulk_create(rows.cases)
    Ruling.objects.bulk_create(ruling for _, ruling, _ in rows.rulings)
    RulingEnd.objects.bulk_create(end for _, _, end in rows.rulings)
    for event, ruling, _ in rows.rulings:
        event.detail = event.detail | {"ruling": ruling.pk}
    for case in rows.cases:
        case.closed_at = closed_at[id(case)]
    Case.objects.bulk_update(rows.cases, ["closed_at"])


def _orders(rows: Rows) -> None:
    accounts = {sold.payment.provider_account for sold in rows.sold}
    ProviderAccount.objects.bulk_create(
        [ProviderAccount(name=name) for name in sorted(accounts)], ignore_conflicts=True
    )
    Order.objects.bulk_create([sold.order for sold in rows.sold])
    Payment.objects.bulk_create([sold.payment for sold in rows.sold])


def _operations(operations: Iterable[Past]) -> None:
    for past in operations:
        judged = past.steps[_JUDGED]
        row = past.row
        row.state, row.version, row.round = judged.state, judged.version, judged.round
        row.attempt_count = judged.attempt_count
    Operation.objects.bulk_create([past.row for past in operations])


def _move(operations: list[Past]) -> None:
    """Approvals are stored when their operation stands where they were given, then it moves on."""
    last = max(len(past.steps) for past in operations)
    for index in range(_JUDGED, last):
        here = [past for past in operations if len(past.steps) > index]
        Approval.objects.bulk_create(
            approval
            for past in here
            for version, approval in past.approvals
            if version == past.steps[index].version
        )
        ahead = [
            (past.row.pk, past.steps[index + 1]) for past in here if len(past.steps) > index + 1
        ]
        if ahead:
            with connection.cursor() as cursor:
                cursor.execute(
                    _MOVED,
                    [
                        [pk for pk, _ in ahead],
                        [step.state for _, step in ahead],
                        [step.version for _, step in ahead],
                        [step.round for _, step in ahead],
                        [step.attempt_count for _, step in ahead],
                    ],
                )
