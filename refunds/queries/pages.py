"""Reads of the console's pages: bounded, ordered, and never one query per row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, QuerySet

from refunds.domain import states
from refunds.models import (
    Attempt,
    Event,
    Evidence,
    Operation,
)


def with_facts() -> QuerySet[Operation]:
    """Operations with all that a page says of them."""
    return Operation.objects.select_related("order", "payment", "agent", "agent_owner", "proposer")


def operation(operation_id: UUID) -> Operation | None:
    """One operation with its order, payment and proposer, or None."""
    return with_facts().filter(pk=operation_id).first()


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
    with connection.cursor() as cursor:
        cursor.execute(_HALTS)
        rows = cursor.fetchall()
    return [
        Halt(kind=kind, account=account, reason=reason, at=at, by=by)
        for kind, account, reason, at, by in rows
    ]


# Every page asks; Django would take longer to write it than the server to answer it.
_HALTS = """
SELECT 'stop' AS kind, '' AS account, reason, stopped_at, stopped_by
FROM sending_stop WHERE ended_at IS NULL
UNION ALL SELECT 'quarantine', '', reason, began_at, '' FROM quarantine WHERE lifted_at IS NULL
UNION ALL SELECT pause_kind, name, pause_reason, paused_at, paused_by
FROM provider_account WHERE pause_kind <> ''
ORDER BY account, kind
"""


def waiting_by_account() -> dict[str, tuple[int, datetime]]:
    """Per account, how many approved refunds wait to be sent and when the first approval ends."""
    rows = (
        Operation.objects.filter(state=states.AUTHORIZED)
        .values("provider_account")
        .annotate(count=Count("pk"), first=Min("expires_at"))
    )
    return {row["provider_account"]: (row["count"], row["first"]) for row in rows}
