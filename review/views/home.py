"""My work: three numbers, then what needs the reader, and in what order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from reconciliation import heartbeat
from refunds.domain.roles import REP
from refunds.queries.numbers import numbers
from review import access, people, roles, work
from review.access import Viewer
from review.context import counts
from review.models import Intent
from review.presenters import rows
from review.presenters.words import span
from review.pressed_pages import page_of

DAYS = 30


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Content by role; somebody without a role sees a page that says so. `since` is a poll."""
    who = access.viewer(request)
    if not who.may(roles.SEE) and REP not in who.roles:
        return render(request, "review/no_queue.html", {"clock": who.clock})
    blocks = work.blocks(who)
    changes = people.waiting_for(who.person) if who.may(roles.ADMINISTER) else 0
    if "since" in request.GET:
        return _poll(request, who, blocks)
    context: dict[str, Any] = {
        "clock": who.clock,
        "blocks": blocks,
        "shown": _shown(blocks),
        "total": _total(blocks),
        "role_changes": changes,
        "nothing": not changes and not any(block.lines or block.failed for block in blocks),
        "reads_queues": who.may(roles.SEE),
        "checker": rows.checker_line(heartbeat.last_beat(), who.clock),
        "checked_at": heartbeat.last_beat(),
    }
    if who.may(roles.SEE):
        context |= _numbers(request, who)
    return render(request, "review/home.html", context)


def _numbers(request: HttpRequest, who: Viewer) -> dict[str, Any]:
    waits = counts(request)
    found = numbers(who.clock.now - timedelta(days=DAYS))
    median = found.median_to_end
    return {
        "counts": waits,
        "days": DAYS,
        "numbers": found,
        "median": span(median) if median is not None else "none yet",
        "oldest": who.clock.age(waits.oldest_at) if waits.oldest_at else "",
    }


def _total(blocks: list[work.Block]) -> str:
    """How much needs the reader, for the title: "4", "9+", or nothing."""
    number = sum(len(block.lines) for block in blocks)
    more = any(block.more for block in blocks)
    return f"{number}{'+' if more else ''}" if number else ""


def _shown(blocks: list[work.Block]) -> str:
    """Every line of the page as its list, key and version, for the address of the poll."""
    return "~".join(
        f"{block.plan.name}-{line.key}.{line.version}" for block in blocks for line in block.lines
    )


def _poll(request: HttpRequest, who: Viewer, blocks: list[work.Block]) -> HttpResponse:
    """204, or the counts, the lines that somebody handled, and how many are new."""
    before = [part for part in request.GET["since"].split("~") if part]
    after = [part for part in _shown(blocks).split("~") if part]
    if set(before) == set(after):
        return HttpResponse(status=204)
    gone = [part.rpartition(".")[0] for part in before if part not in after]
    on_screen = {part.partition("-")[0] for part in before}
    context = {
        "clock": who.clock,
        "blocks": [block for block in blocks if block.plan.name in on_screen],
        "total": _total(blocks),
        "handled": work.handled(gone, who),
        "count": max(len(set(after) - set(before)), len(gone)),
        "url": request.path,
    }
    return render(request, "review/home.html#poll", context)


@require_GET
def recorded(request: HttpRequest, press: UUID) -> HttpResponse:
    """What was recorded under one press of the reader's own: the answer after a lost answer."""
    who = access.viewer(request)
    found = Intent.objects.filter(pk=press).select_related("person").first()
    if found is not None and found.person_id != who.person.pk:
        raise Http404
    page = page_of(found) if found else ""
    return render(
        request, "review/recorded.html", {"clock": who.clock, "found": found, "page": page}
    )
