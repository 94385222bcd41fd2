"""Reads about cases, and about what nobody knows yet: the unknown queue and the counts of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from reconciliation.models import Case, CaseEvent, Ruling
from refunds.domain import states
from refunds.models import Operation, ProviderRefund

# A case that only asks how the customer gets the money: its refund has ended.
OWED = Q(reasons=["remedy"])
_SIGNED_ONCE = Exists(Ruling.objects.filter(case=OuterRef("pk"), end__isnull=True))
_OPEN_CASE = Exists(Case.objects.filter(operation=OuterRef("pk"), closed_at=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What waits, for the rail, the tabs and the first page.

    `uncertain`: operations whose money may have moved; `oldest_at`: since when the oldest is
    unknown; `automatic`: those of them without a case; `cases`: open cases that somebody must find
    out about, of which `second` wait for a second signature and `snoozed` rest; `owed`: cases that
    only ask how a customer gets the money.
    """

    waiting: int
    stale: int
    uncertain: int
    automatic: int
    oldest_at: datetime | None
    cases: int
    second: int
    snoozed: int
    owed: int

    @property
    def person(self) -> int:
        """The rows under "Needs a person": what rests, or waits for a signature, has its own."""
        return self.cases - self.second - self.snoozed

    @property
    def queue(self) -> int:
        """The rows of the unknown queue."""
        return self.cases + self.automatic

    @property
    def uncertain_with_case(self) -> int:
        return self.uncertain - self.automatic


def counts() -> Counts:
    """All of them, in two queries."""
    uncertain = Q(state__in=states.UNCERTAIN)
    found = Operation.objects.filter(
        state__in=[states.AWAITING_APPROVAL, *states.UNCERTAIN]
    ).aggregate(
        waiting=Count("pk", filter=Q(state=states.AWAITING_APPROVAL)),
        stale=Count("pk", filter=Q(state=states.AWAITING_APPROVAL) & ~Q(stale_cause="")),
        uncertain=Count("pk", filter=uncertain),
        automatic=Count("pk", filter=uncertain & Q(~_OPEN_CASE)),
        oldest_at=Min("unknown_since", filter=uncertain),
    )
    cases = Case.objects.filter(closed_at=None).aggregate(
        cases=Count("pk", filter=~OWED),
        second=Count("pk", filter=~OWED & Q(_SIGNED_ONCE)),
        snoozed=Count("pk", filter=~OWED & ~Q(_SIGNED_ONCE) & _rests()),
        owed=Count("pk", filter=OWED),
    )
    return Counts(**found, **cases)


def _rests() -> Q:
    return Q(snoozed_until__gt=timezone.now())


def open_cases() -> QuerySet[Case]:
    """Open cases, what is due first in front, with everything a row shows."""
    return _with_facts().filter(closed_at=None).order_by("due_at", "pk")


def _with_facts() -> QuerySet[Case]:
    return Case.objects.select_related(
        "owner",
        "payment__order",
        "operation__order",
        "operation__payment",
        "operation__agent",
        "operation__agent_owner",
        "operation__proposer",
    ).defer("operation__body")


def needs_a_person() -> QuerySet[Case]:
    """Open cases that somebody must work on now."""
    return open_cases().filter(~OWED & ~Q(_SIGNED_ONCE) & ~_rests())


def wait_for_second() -> QuerySet[Case]:
    return open_cases().filter(~OWED & Q(_SIGNED_ONCE))


def snoozed() -> QuerySet[Case]:
    return open_cases().filter(~OWED & ~Q(_SIGNED_ONCE) & _rests())


def owed() -> QuerySet[Case]:
    return open_cases().filter(OWED)


def one(case_id: int) -> Case | None:
    """One case, open or closed, with everything a page shows."""
    return _with_facts().filter(pk=case_id).first()


def steps_of(cases: list[Case]) -> list[CaseEvent]:
    """What was done about these cases, oldest first; asks nothing where there are none."""
    if not cases:
        return []
    return list(CaseEvent.objects.filter(case__in=cases).order_by("at", "pk"))


def mark_of(operation_id: UUID) -> int:
    """Moves with every step that changes what may be done about the cases of an operation."""
    versions = Case.objects.filter(operation=operation_id).values_list("version", flat=True)
    return sum(versions)


def refunds_of(case: Case) -> list[ProviderRefund]:
    """What the provider is known to have paid back on the case's payment."""
    if case.payment is None:
        return []
    return list(ProviderRefund.objects.filter(payment=case.payment).order_by("first_seen_at", "pk"))


def cases_after(rows: QuerySet[Case], at: datetime, case_id: int) -> QuerySet[Case]:
    """The cases after one of `open_cases`, by its due time and id."""
    return rows.filter(Q(due_at__gt=at) | Q(due_at=at, pk__gt=case_id))


def automatic() -> QuerySet[Operation]:
    """Uncertain operations without a case, the oldest in front: ids are ordered by time."""
    return (
        Operation.objects.filter(~_OPEN_CASE, state__in=states.UNCERTAIN)
        .select_related("order", "payment", "agent", "agent_owner", "proposer")
        .defer("body")
        .order_by("pk")
    )


def cases_of(operation_id: UUID) -> list[Case]:
    """Every case of an operation, oldest first."""
    return list(
        Case.objects.select_related("owner").filter(operation=operation_id).order_by("opened_at")
    )


def called(text: str) -> Case | None:
    """The case of a reference as pages print it: "C-30"."""
    letter, _, number = text.strip().partition("-")
    if letter.upper() != "C" or not (number.isascii() and number.isdigit()) or len(number) > 9:
        return None
    return Case.objects.select_related("payment__order", "operation").filter(pk=number).first()


def open_of(ids: Iterable[UUID]) -> dict[UUID, Case]:
    """The open case of each operation that has one."""
    found = Case.objects.select_related("owner").filter(operation__in=list(ids), closed_at=None)
    return {each.operation_id: each for each in found if each.operation_id is not None}
