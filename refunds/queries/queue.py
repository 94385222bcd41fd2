"""The lists of proposals: who may decide which, what came back, and who decided what.

Every list is bounded by its reader with a slice, ordered for keyset paging, and costs one query.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from refunds import prepared
from refunds.domain import states
from refunds.models import Approval, Event, Operation, Person, Proposal
from refunds.queries.pages import with_facts

# Refunds of an order that happened, may have happened, or are under way.
_MOVING = (states.SUBMITTING, states.PENDING, states.UNKNOWN, states.SUCCEEDED, states.MISMATCHED)


def waiting() -> QuerySet[Operation]:
    """Proposals that wait for people, what ends first in front."""
    return with_facts().filter(state=states.AWAITING_APPROVAL).order_by("due_at", "pk")


def stale() -> QuerySet[Operation]:
    """Those of `waiting` that came back, by what brought them back."""
    return waiting().exclude(stale_cause="").order_by("stale_cause", "due_at", "pk")


def half_approved(dead: RawSQL) -> QuerySet[Operation]:
    """Those of `waiting` that somebody approved in this round: another person must, too.

    `dead` selects the approvals that count no longer (the ledger's `dead_of_waiting`).
    """
    # Who needs one person only does not wait once there is one: few rows are compared.
    return waiting().filter(Exists(_counting(dead)), quorum__gt=1)


def _counting(dead: RawSQL) -> QuerySet[Approval]:
    of_round = Approval.objects.filter(operation=OuterRef("pk"), round=OuterRef("round"))
    return of_round.exclude(pk__in=dead)


def waiting_for(person: Person, dead: RawSQL, *, only_with_finance: bool) -> QuerySet[Operation]:
    """Of `waiting`, what this person may still decide: not theirs or their agent's, and not yet
    approved by them in this round (`dead` as above). `only_with_finance`: those that finance must sign too."""
    signed = _counting(dead).filter(approver=person)
    found = waiting().exclude(proposer=person).exclude(agent_owner=person).filter(~Exists(signed))
    return found.filter(tier=3) if only_with_finance else found


def decided_by(person: Person, since: datetime) -> QuerySet[Operation]:
    """What this person approved or rejected, of operations not older than `since`; newest first.

    The bound keeps the walk over operations short: ids are ordered by time.
    """
    oldest = _id_at(since)
    approved = Approval.objects.filter(approver=person, at__gte=since, operation__gte=oldest)
    rejected = Event.objects.filter(event="rejected", operation__gte=oldest, actor=_actor(person))
    by_person = Q(pk__in=approved.values("operation")) | Q(
        pk__in=rejected.values("operation"), state=states.REJECTED
    )
    return with_facts().filter(by_person, pk__gte=oldest).order_by("-pk")


def _id_at(at: datetime) -> UUID:
    """The smallest UUIDv7 of an instant."""
    return UUID(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))


def _actor(person: Person) -> str:
    return f"person:{person.username}"


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

# What no line shows; it is asked for where it is used all the same.
_NOT_IN_A_LINE = (
    "body",
    "read_links",
    "business_key",
    "request_ref",
    "provider_key",
    "policy_version",
    "order__lines",
    "order__facts",
    "order__links",
    "order__snapshot_digest",
    "agent__accounts",
    *(
        f"{who}__{name}"
        for who in ("agent_owner", "proposer")
        for name in ("password", "first_name", "last_name", "email", "last_login", "date_joined")
    ),
)


def in_lines(rows: QuerySet[Operation]) -> QuerySet[Operation]:
    """The same rows with what a line shows of each: half of the columns, none of the JSON of orders."""
    return rows.defer(*_NOT_IN_A_LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TabCounts:
    """How many stand on the tabs; each stops counting at its cap."""

    second: int
    decided: int
    everything: int


def tab_counts(person: Person, since: datetime, dead: RawSQL, count_max: int) -> TabCounts:
    """The counts of the tabs that nothing else counts, in one query that reads few rows.

    `decided` are the rows of `decided_by`, those that were approved first: who decided much is
    known to have reached the cap by the newest of them.
    """
    values: dict[str, Any] = {
        "person": person.pk,
        "actor": _actor(person),
        "since": since,
        "oldest": _id_at(since),
    }
    assert not dead.params, "all that wait"
    counted = prepared.one(_tab_counts(dead.sql, count_max), values)
    assert counted is not None, "counts are one row"
    second, decided, all_of_them = counted
    return TabCounts(second=second, decided=decided, everything=all_of_them)


@cache
def _tab_counts(dead: str, count_max: int) -> str:
    # The cap is part of the statement: planned without it, it might be of any size.
    return _TAB_COUNTS.replace("/*dead*/", dead).replace("/*count_max*/", str(count_max))


_TAB_COUNTS = """
SELECT (SELECT count(*) FROM (
  SELECT FROM operation w WHERE w.state = 'awaiting_approval' AND w.quorum > 1 AND EXISTS (
    SELECT FROM approval a
    WHERE a.operation_id = w.id AND a.round = w.round AND a.id NOT IN (/*dead*/))
  LIMIT /*count_max*/
) AS half), (SELECT count(*) FROM (
  SELECT a.operation_id FROM approval a
  WHERE a.approver_id = %(person)s::bigint AND a.at >= %(since)s::timestamptz AND a.operation_id >= %(oldest)s::uuid
    AND NOT EXISTS (SELECT FROM approval later WHERE later.operation_id = a.operation_id
      AND later.approver_id = a.approver_id AND later.round > a.round)
  UNION ALL (
    SELECT DISTINCT e.operation_id FROM event e JOIN operation o ON o.id = e.operation_id
    WHERE e.event = 'rejected' AND e.actor = %(actor)s::text AND e.operation_id >= %(oldest)s::uuid
      AND o.state = 'rejected' AND NOT EXISTS (SELECT FROM approval a
        WHERE a.operation_id = o.id AND a.approver_id = %(person)s::bigint))
  LIMIT /*count_max*/
) AS decided), (SELECT count(*) FROM (
  SELECT FROM operation LIMIT /*count_max*/
) AS every)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a line says besides its operation: the order version that it was judged on, and how
    many other refunds of the order happened or may have, those made elsewhere included."""

    seen_version: int | None
    earlier: int


def beside(ids: Iterable[UUID]) -> dict[UUID, Beside]:
    """For every line of a page, in one query."""
    found = prepared.rows(_BESIDE, {"ids": list(ids), "moving": list(_MOVING)})
    return {pk: Beside(seen_version=version, earlier=earlier) for pk, version, earlier in found}


_BESIDE = """
SELECT o.id,
  (SELECT (c.inputs ->> 'version')::bigint FROM policy_check c
   WHERE c.operation_id = o.id AND c.name = 'order_known'),
  (SELECT count(*) FROM operation x
   WHERE x.order_id = o.order_id AND x.id <> o.id AND x.state = ANY(%(moving)s::text[]))
  + (SELECT count(*) FROM provider_refund r JOIN payment p ON p.id = r.payment_id
     WHERE p.order_id = o.order_id AND r.operation_id IS NULL AND r.counts)
FROM operation o WHERE o.id = ANY(%(ids)s::uuid[])
"""


def last_events(ids: Iterable[UUID]) -> dict[UUID, Event]:
    """The newest event of each operation: who moved it to where it is, and when."""
    newest = (
        Event.objects.filter(operation__in=list(ids))
        .order_by("operation_id", "-seq")
        .distinct("operation_id")
    )
    return {each.operation_id: each for each in newest}
