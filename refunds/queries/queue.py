"""The lists of proposals: who may decide which, what came back, and who decided what.

Every list is bounded by its reader with a slice, ordered for keyset paging, and costs one query.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from refunds.domain import states
from refunds.models import Approval, Event, Operation, Person, Proposal
from refunds.queries.pages import with_facts

# Refunds of an order that happened, may have happened, or are under way.
_MOVING = (states.SUBMITTING, states.PENDING, states.UNKNOWN, states.SUCCEEDED, states.MISMATCHED)


def waiting() -> QuerySet[Operation]:
    """Proposals that wait for people, what ends first in front."""
    found = with_facts().filter(state=states.AWAITING_APPROVAL, due_at__isnull=False)
    return found.order_by("due_at", "pk")


def stale() -> QuerySet[Operation]:
    """Those of `waiting` that came back, by what brought them back."""
    return waiting().exclude(stale_cause="").order_by("stale_cause", "due_at", "pk")


def half_approved(dead: RawSQL) -> QuerySet[Operation]:
    """Those of `waiting` that somebody approved in this round: another person must, too.

    `dead` selects the approvals that count no longer (the ledger's `dead_of_waiting`).
    """
    return waiting().filter(Exists(_counting(dead)))


def _counting(dead: RawSQL) -> QuerySet[Approval]:
    of_round = Approval.objects.filter(operation=OuterRef("pk"), round=OuterRef("round"))
    return of_round.exclude(pk__in=dead)


def waiting_for(person: Person, dead: RawSQL, *, only_with_finance: bool) -> QuerySet[Operation]:
    """Of `waiting`, what this person may still decide: not theirs or their agent's, and not yet
    approved by them in this round (`dead` as above). `only_with_finance`: those that finance must sign too."""
    signed = _counting(dead).filter(approver=person)
    found = waiting().exclude(proposer=person).exclude(agent_owner=person).filter(~Exists(signed))
    return found.filter(tier=3) if only_with_finance else found


def decided_by(person: Person, since: UUID) -> QuerySet[Operation]:
    """What this person approved or rejected, of operations not older than `since`; newest first.

    The bound keeps the walk over operations short: ids are ordered by time.
    """
    approved = Approval.objects.filter(operation=OuterRef("pk"), approver=person)
    rejected = Event.objects.filter(
        operation=OuterRef("pk"), event="rejected", actor=f"person:{person.username}"
    )
    by_person = Exists(approved) | Q(Exists(rejected), state=states.REJECTED)
    return with_facts().filter(by_person, pk__gte=since).order_by("-pk")


def everything() -> QuerySet[Operation]:
    """Every operation, newest first: ids are ordered by time."""
    return with_facts().order_by("-pk")


def returned_to(person: Person, since: datetime) -> QuerySet[Operation]:
    """What came back to this person: approved by them and stale now, or asked for by them since
    then and refused by policy or by a lead. The newest return in front."""
    signed = Approval.objects.filter(operation=OuterRef("pk"), approver=person)
    stale_now = waiting().exclude(stale_cause="").filter(Exists(signed)).order_by()
    asked = Proposal.objects.filter(person=person, created=True, at__gte=since)
    refused = with_facts().filter(
        pk__in=asked.values("operation"), state__in=(states.REJECTED, states.DENIED)
    )
    return stale_now.union(refused).order_by("-entered_at")


def asked_by(person: Person, since: datetime) -> QuerySet[Operation]:
    """What this person asked for since then, newest first."""
    asked = Proposal.objects.filter(person=person, created=True, at__gte=since)
    return with_facts().filter(pk__in=asked.values("operation")).order_by("-pk")


def oldest_uncertain() -> QuerySet[Operation]:
    """Operations whose outcome is not known, the longest doubt in front."""
    return with_facts().filter(state__in=states.UNCERTAIN).order_by("unknown_since", "pk")


def these(ids: Iterable[UUID]) -> dict[UUID, Operation]:
    """Operations by id, with their facts; what is unknown is left out."""
    return {each.pk: each for each in with_facts().filter(pk__in=list(ids))}


# Keyset paging


def after_due(rows: QuerySet[Operation], at: datetime, operation_id: UUID) -> QuerySet[Operation]:
    """The rows after one of `waiting`, by its `due_at` and id."""
    return rows.filter(Q(due_at__gt=at) | Q(due_at=at, pk__gt=operation_id))


def after_stale(
    rows: QuerySet[Operation], cause: str, at: datetime, operation_id: UUID
) -> QuerySet[Operation]:
    """The rows after one of `stale`, by its cause, `due_at` and id."""
    later = Q(due_at__gt=at) | Q(due_at=at, pk__gt=operation_id)
    return rows.filter(Q(stale_cause__gt=cause) | Q(later, stale_cause=cause))


def before(rows: QuerySet[Operation], operation_id: UUID) -> QuerySet[Operation]:
    """The rows after one of `everything` or `decided_by`."""
    return rows.filter(pk__lt=operation_id)


# What a page of rows needs besides


@dataclass(frozen=True, slots=True, kw_only=True)
class TabCounts:
    """How many stand on the tabs; each stops counting at its cap."""

    second: int
    decided: int
    everything: int


def tab_counts(person: Person, since: UUID, dead: RawSQL, count_max: int) -> TabCounts:
    """The counts of the tabs that nothing else counts, in one query that reads few rows."""
    parts = [
        half_approved(dead).order_by()[:count_max],
        decided_by(person, since)[:count_max],
        everything()[:count_max],
    ]
    sqls, values = zip(*(part.values("pk").query.sql_with_params() for part in parts), strict=True)
    counted = ", ".join(f"(SELECT count(*) FROM ({sql}) AS part)" for sql in sqls)  # noqa: S608 - the parts are Django's own SQL
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + counted, [each for part in values for each in part])
        second, decided, all_of_them = cursor.fetchone()
    return TabCounts(second=second, decided=decided, everything=all_of_them)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a line says besides its operation: the order version that it was judged on, and how
    many other refunds of the order happened or may have, those made elsewhere included."""

    seen_version: int | None
    earlier: int


def beside(ids: Iterable[UUID]) -> dict[UUID, Beside]:
    """For every line of a page, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_BESIDE, {"ids": list(ids), "moving": list(_MOVING)})
        return {
            pk: Beside(seen_version=version, earlier=earlier)
            for pk, version, earlier in cursor.fetchall()
        }


_BESIDE = """
SELECT o.id,
  (SELECT (c.inputs ->> 'version')::bigint FROM policy_check c
   WHERE c.operation_id = o.id AND c.name = 'order_known'),
  (SELECT count(*) FROM operation x
   WHERE x.order_id = o.order_id AND x.id <> o.id AND x.state = ANY(%(moving)s))
  + (SELECT count(*) FROM provider_refund r JOIN payment p ON p.id = r.payment_id
     WHERE p.order_id = o.order_id AND r.operation_id IS NULL AND r.counts)
FROM operation o WHERE o.id = ANY(%(ids)s)
"""


def last_events(ids: Iterable[UUID]) -> dict[UUID, Event]:
    """The newest event of each operation: who moved it to where it is, and when."""
    newest = (
        Event.objects.filter(operation__in=list(ids))
        .order_by("operation_id", "-seq")
        .distinct("operation_id")
    )
    return {each.operation_id: each for each in newest}
