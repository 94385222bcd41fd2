"""Reads about cases, and about what nobody knows yet: the unknown queue and the counts of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from reconciliation.models import Case, CaseEvent, Ruling
from refunds import prepared
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
    only ask how a customer gets the money. `given_up`: messages that nobody tries any more, 200
    at most. `alarms`: those that fire and that nobody has.
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
    given_up: int
    alarms: int

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
    """All of them, in one query."""
    row = prepared.one(_COUNTS, {})
    assert row is not None, "counts are one row"
    return Counts(**dict(zip(_COUNTED, row, strict=True)))


_COUNTED = (
    "waiting",
    "stale",
    "uncertain",
    "automatic",
    "oldest_at",
    "cases",
    "second",
    "snoozed",
    "owed",
    "given_up",
    "alarms",
)
# The states are part of the statement: planned without them it would read every row.
_COUNTS = """
SELECT waiting.*, doubt.*, found.*, (
  SELECT count(*) FROM (SELECT 1 FROM outbox_delivery WHERE state = 'given_up' LIMIT 200) AS undelivered
), (
  SELECT count(*) FROM alarm WHERE ended_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM alarm_acknowledgement s WHERE s.alarm_id = alarm.id AND s.until > now())
) FROM (
  SELECT count(*), count(*) FILTER (WHERE o.stale_cause <> '')
  FROM operation o WHERE o.state = '/*waiting*/'
) AS waiting, (
  -- An operation has one open case at most.
  SELECT count(*), count(*) - (
      SELECT count(*) FROM review_case c JOIN operation x ON x.id = c.operation_id
      WHERE c.closed_at IS NULL AND x.state = ANY ('{/*uncertain*/}')),
    min(o.unknown_since)
  FROM operation o WHERE o.state = ANY ('{/*uncertain*/}')
) AS doubt, (
  SELECT count(*) FILTER (WHERE NOT owed),
    count(*) FILTER (WHERE NOT owed AND signed_once),
    count(*) FILTER (WHERE NOT owed AND NOT signed_once AND rests),
    count(*) FILTER (WHERE owed)
  FROM (
    SELECT c.reasons = ARRAY['remedy']::varchar[] AS owed,
      coalesce(c.snoozed_until > now(), false) AS rests,
      EXISTS (SELECT 1 FROM case_ruling r WHERE r.case_id = c.id AND NOT EXISTS
        (SELECT 1 FROM case_ruling_end e WHERE e.ruling_id = r.id)) AS signed_once
    FROM review_case c WHERE c.closed_at IS NULL
  ) AS each_case
) AS found
""".replace("/*waiting*/", states.AWAITING_APPROVAL).replace(
    "/*uncertain*/", ",".join(sorted(states.UNCERTAIN))
)


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
