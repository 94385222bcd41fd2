"""My work: three numbers, then what needs the reader, and in what order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from reconciliation import heartbeat
from refunds.models import Operation
from refunds.queries import pages
from review import access, case_reads, facts, proposal, roles
from review.context import counts
from review.models import Intent
from review.presenters import rows
from review.presenters.words import span

BLOCK_ROWS = 7
DAYS = 30


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Content by role; somebody without a role sees a page that says so."""
    who = access.viewer(request)
    if not who.may(roles.SEE):
        return render(request, "review/no_queue.html", {"clock": who.clock})
    clock = who.clock
    waits = counts(request)
    numbers = pages.numbers(clock.now - timedelta(days=DAYS))
    median = numbers.median_to_end
    ran_at = heartbeat.last_beat()
    mine = _mine(who)
    stale = list(pages.waiting(stale=True)[:BLOCK_ROWS])
    given = pages.approvals_of([op.pk for op in [*mine, *stale]])
    context: dict[str, Any] = {
        "clock": clock,
        "counts": waits,
        "days": DAYS,
        "numbers": numbers,
        "median": span(median) if median is not None else "none yet",
        "oldest": clock.age(waits.oldest_at) if waits.oldest_at else "",
        "decides": who.may(roles.APPROVE),
        "mine": [proposal.row(op, given[op.pk], who) for op in mine],
        "stale": [proposal.row(op, given[op.pk], who) for op in stale],
        "cases": [
            (case, facts.case(case), _case_bar(case, who))
            for case in case_reads.open_cases()[:BLOCK_ROWS]
        ],
        "checker": rows.checker_line(ran_at, clock),
    }
    context["nothing"] = not (mine or stale or context["cases"])
    return render(request, "review/home.html", context)


def _case_bar(case: Any, who: access.Viewer) -> rows.Bar:
    plain = facts.operation(case.operation) if case.operation else None
    return rows.case_bar(facts.case(case), plain, who.clock)


def _mine(who: access.Viewer) -> list[Operation]:
    """Proposals this reader could decide: not their own, and not signed by them already."""
    if not who.may(roles.APPROVE):
        return []
    return list(
        pages.waiting_for(who.person, only_with_finance="lead" not in who.roles)[:BLOCK_ROWS]
    )


@require_GET
def recorded(request: HttpRequest, press: UUID) -> HttpResponse:
    """What was recorded under one press of the reader's own: the answer after a lost answer."""
    who = access.viewer(request)
    found = Intent.objects.filter(pk=press).select_related("person").first()
    if found is not None and found.person_id != who.person.pk:
        raise Http404
    return render(request, "review/recorded.html", {"clock": who.clock, "found": found})
