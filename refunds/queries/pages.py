"""Reads of the console's pages: bounded, ordered, and never one query per row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import (
    Count,
    Exists,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Value,
    Window,
)
from django.db.models.functions import RowNumber

from refunds.domain import states
from refunds.models import (
    Approval,
    Attempt,
    Event,
    Evidence,
    Operation,
    OrderMove,
    Person,
    PolicyCheck,
    ProviderAccount,
    ProviderRefund,
    Quarantine,
    SendingStop,
)

_SHOWN_MAX = 50


def _with_facts() -> QuerySet[Operation]:
    return Operation.objects.select_related(
        "order", "payment", "agent", "agent_owner", "proposer"
    ).defer("body")


def operation(operation_id: UUID) -> Operation | None:
    """One operation with its order, payment and proposer, or None."""
    return _with_facts().filter(pk=operation_id).first()


# The approvals queue


def waiting(*, stale: bool = False) -> QuerySet[Operation]:
    """Proposals that wait for people, what ends first in front; `stale`: came back only."""
    found = _with_facts().filter(state=states.AWAITING_APPROVAL, due_at__isnull=False)
    if stale:
        found = found.exclude(stale_cause="")
    return found.order_by("due_at", "pk")


def waiting_for(person: Person, *, only_with_finance: bool) -> QuerySet[Operation]:
    """Of `waiting`, what this person may still decide: not theirs or their agent's, and not yet
    approved by them in this round. `only_with_finance`: those that finance must sign too."""
    signed = Approval.objects.filter(
        operation=OuterRef("pk"), round=OuterRef("round"), approver=person
    )
    found = waiting().exclude(proposer=person).exclude(agent_owner=person).filter(~Exists(signed))
    return found.filter(tier=3) if only_with_finance else found


def everything() -> QuerySet[Operation]:
    """Every operation, newest first: ids are ordered by time."""
    return _with_facts().order_by("-pk")


def after_due(rows: QuerySet[Operation], at: datetime, operation_id: UUID) -> QuerySet[Operation]:
    """The rows after one of `waiting`, by its `due_at` and id."""
    return rows.filter(Q(due_at__gt=at) | Q(due_at=at, pk__gt=operation_id))


def approvals_of(ids: Iterable[UUID]) -> dict[UUID, list[Approval]]:
    """All approvals of the operations, oldest first, whatever their round."""
    given: dict[UUID, list[Approval]] = defaultdict(list)
    for approval in (
        Approval.objects.select_related("approver").filter(operation__in=list(ids)).order_by("pk")
    ):
        given[approval.operation_id].append(approval)
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands around one proposal: its checks, and what else moved money on the order."""

    checks: list[PolicyCheck]
    others: list[Operation]
    refunds: list[ProviderRefund]
    moves: list[OrderMove]


def around(operations: Sequence[Operation], since: Mapping[UUID, int]) -> dict[UUID, Around]:
    """Checks, other operations and provider refunds of each order, and its moves since a version.

    `since` names the version per operation; without one no moves are read. Newest first, at most
    50 of each; as many queries for twenty operations as for one.
    """
    orders = {each.order_id for each in operations}
    checks = _grouped(
        PolicyCheck.objects.filter(operation__in=operations).order_by("position"),
        lambda check: check.operation_id,
    )
    others = _grouped(
        _newest(
            Operation.objects.select_related("agent", "proposer").defer("body"),
            orders,
            "order_id",
            _SHOWN_MAX + 1,
        ),
        lambda other: other.order_id,
    )
    refunds = _grouped(
        _newest(
            ProviderRefund.objects.select_related("payment"),
            orders,
            "payment__order_id",
            _SHOWN_MAX,
        ),
        lambda refund: refund.payment.order_id,
    )
    moves = _moves(operations, since) if since else {}
    return {
        of.pk: Around(
            checks=checks[of.pk],
            others=[each for each in others[of.order_id] if each.pk != of.pk][:_SHOWN_MAX],
            refunds=refunds[of.order_id],
            moves=[
                each
                for each in moves.get(of.order_id, ())
                if of.pk in since and each.version > since[of.pk]
            ][:_SHOWN_MAX],
        )
        for of in operations
    }


def _newest(rows: QuerySet[Any], orders: Collection[int], order: str, count_max: int) -> list[Any]:
    """At most `count_max` rows of each order, the newest first."""
    place = Window(RowNumber(), partition_by=F(order), order_by=F("pk").desc())
    found = rows.filter(**{f"{order}__in": orders}).alias(place=place)
    return list(found.filter(place__lte=count_max).order_by("-pk"))


def _moves(
    operations: Sequence[Operation], since: Mapping[UUID, int]
) -> dict[int, list[OrderMove]]:
    """The moves of the orders of `since`, oldest first."""
    oldest: dict[int, int] = {}
    for of in operations:
        if of.pk in since:
            oldest[of.order_id] = min(oldest.get(of.order_id, since[of.pk]), since[of.pk])
    wanted = Q()
    for order_id, version in oldest.items():
        wanted |= Q(order_id=order_id, version__gt=version)
    return _grouped(
        OrderMove.objects.filter(wanted).order_by("version")[: _SHOWN_MAX * len(oldest)],
        lambda move: move.order_id,
    )


def _grouped[Row, Key](rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


# One operation


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that happened to one operation."""

    events: list[Event]
    attempts: list[Attempt]
    evidence: list[Evidence]


def history(of: Operation) -> History:
    """Events, attempts and evidence (without its raw bytes), oldest first."""
    return History(
        events=list(Event.objects.filter(operation=of).order_by("seq")),
        attempts=list(Attempt.objects.filter(operation=of).order_by("no")),
        evidence=list(
            Evidence.objects.filter(operation=of).defer("body").order_by("stored_at", "pk")
        ),
    )


def version_of(operation_id: UUID) -> tuple[int, int, int] | None:
    """(version, lookups started, evidence rows) of an operation: what a poll compares."""
    found = (
        Operation.objects.filter(pk=operation_id)
        .annotate(seen=Count("evidence"))
        .values_list("version", "lookup_started", "seen")
        .first()
    )
    return found and (found[0], found[1], found[2])


def last_evidence(ids: Iterable[UUID]) -> dict[UUID, Evidence]:
    """The newest evidence of each operation, without its raw bytes."""
    newest = (
        Evidence.objects.filter(operation__in=list(ids))
        .defer("body")
        .order_by("operation_id", "-pk")
        .distinct("operation_id")
    )
    return {each.operation_id: each for each in newest if each.operation_id is not None}


# What stops sending


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """One thing that stops sending: `kind` is stop, quarantine, or an account's pause kind."""

    kind: str
    account: str
    reason: str
    at: datetime
    by: str


def halts() -> list[Halt]:
    """The open stop, the open quarantine and every paused account, in one query."""
    stops = SendingStop.objects.filter(ended_at=None).values_list(
        Value("stop"), Value(""), "reason", "stopped_at", "stopped_by"
    )
    quarantines = Quarantine.objects.filter(lifted_at=None).values_list(
        Value("quarantine"), Value(""), "reason", "began_at", Value("")
    )
    paused = ProviderAccount.objects.exclude(pause_kind="").values_list(
        "pause_kind", "name", "pause_reason", "paused_at", "paused_by"
    )
    rows = [*stops.union(quarantines, paused, all=True)]
    return [
        Halt(kind=kind, account=account, reason=reason, at=at, by=by)
        for kind, account, reason, at, by in sorted(rows, key=lambda row: (row[1], row[0]))
    ]


def waiting_by_account() -> dict[str, tuple[int, datetime]]:
    """Per account, how many approved refunds wait to be sent and when the first approval ends."""
    rows = (
        Operation.objects.filter(state=states.AUTHORIZED)
        .values("provider_account")
        .annotate(count=Count("pk"), first=Min("expires_at"))
    )
    return {row["provider_account"]: (row["count"], row["first"]) for row in rows}


# Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The three numbers of the first page, over the days that were asked for.

    `paid_twice`: operations that more than one counting provider refund stands for.
    `median_to_end`: from unknown to ended, of those that ended; None when none did.
    """

    paid_twice: int
    ended_count: int
    median_to_end: timedelta | None


def numbers(since: datetime) -> Numbers:
    """Both figures that need more than a count of rows; `unresolved` is such a count."""
    paid_twice = (
        ProviderRefund.objects.filter(counts=True, operation__isnull=False)
        .values("operation")
        .annotate(number=Count("pk"), newest=Max("first_seen_at"))
        .filter(number__gt=1, newest__gte=since)
        .count()
    )
    with connection.cursor() as cursor:
        cursor.execute(_TO_END, [since])
        ended_count, median = cursor.fetchone()
    return Numbers(paid_twice=paid_twice, ended_count=ended_count, median_to_end=median)


_TO_END = """
SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY settled_at - unknown_since)
FROM operation WHERE unknown_since IS NOT NULL AND settled_at >= %s
"""
