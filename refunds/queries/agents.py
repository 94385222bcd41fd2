"""Agents with their keys, and what came of their proposals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Prefetch, Q, QuerySet

from refunds.domain import states
from refunds.models import Agent, Credential, Operation, Person, Proposal

# Where a proposal stands or stood when people or policy had said yes.
_APPROVED = (
    states.AUTHORIZED,
    *states.UNCERTAIN,
    states.SUCCEEDED,
    states.MISMATCHED,
    states.RETURNED,
    states.FAILED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Operations that an agent asked for since an instant, by what came of them so far.

    `stale`: an approval of it lapsed at least once and none holds now.
    """

    proposed: int = 0
    approved: int = 0
    rejected: int = 0
    stale: int = 0


def agents(*, owned_by: Person | None = None) -> QuerySet[Agent]:
    """All agents, or one owner's, by name, with their keys, newest first."""
    keys = Prefetch("credentials", Credential.objects.order_by("-pk"))
    found = Agent.objects.select_related("owner").prefetch_related(keys).order_by("name")
    return found if owned_by is None else found.filter(owner=owned_by)


def tallies(ids: Iterable[int], since: datetime) -> dict[int, Tally]:
    """Per agent; an agent that asked for nothing is missing."""
    asked = Proposal.objects.filter(
        agent__in=list(ids), at__gte=since, operation__agent=F("agent")
    ).values("agent")

    def number(condition: Q) -> Count:
        return Count("operation", filter=condition, distinct=True)

    rows = asked.annotate(
        proposed=Count("operation", distinct=True),
        approved=number(Q(operation__state__in=_APPROVED)),
        rejected=number(Q(operation__state=states.REJECTED)),
        stale=number(
            Q(operation__state__in=(states.AWAITING_APPROVAL, states.EXPIRED))
            & ~Q(operation__stale_cause="")
        ),
    )
    return {
        row["agent"]: Tally(
            proposed=row["proposed"],
            approved=row["approved"],
            rejected=row["rejected"],
            stale=row["stale"],
        )
        for row in rows
    }


def waiting_count(agent: Agent) -> int:
    """Proposals of this agent that wait for people."""
    return Operation.objects.filter(agent=agent, state=states.AWAITING_APPROVAL).count()
