"""What a poll of the approvals list says: nothing, or what moved since the page was drawn.

Rows keep their places: what was decided elsewhere says so where it stands, and what is new waits
behind a bar until the reader asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from refunds.domain import states
from refunds.models import Operation
from refunds.queries import queue
from review import access, facts, queue_page, queue_rows
from review.paging import PAGE_ROWS
from review.presenters import waiting
from review.presenters.words import count_of
from review.shown import read_shown

POLL_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The time that a row has left, drawn anew while it is short."""

    id: UUID
    words: str


def answer(request: HttpRequest) -> HttpResponse:
    """204, or fragments: the bar, rows that moved, times that run out, and what is said aloud.

    `since` has the rows as the page was drawn, `moved` those that were drawn anew since.
    """
    shown = read_shown(request.GET["since"]) | read_shown("~".join(request.GET.getlist("moved")))
    now = list(queue_page.listed(request)[:PAGE_ROWS])
    kept = {op.pk: op for op in now}
    away = [pk for pk in shown if pk not in kept]
    found = (kept | queue.these(away)) if away else kept
    moved = [op for pk, version in shown.items() if (op := found.get(pk)) and op.version != version]
    new = [op for op in now if op.pk not in shown]
    context = _running_out(request, [op for op in now if shown.get(op.pk) == op.version])
    followed = _followed(request, found)
    overtaken = None if "followed" in request.GET else _overtaken(request, found)
    if not (moved or new or followed or overtaken or context["lefts"]):
        return HttpResponse(status=204)
    who = access.viewer(request)
    context |= {
        "clock": who.clock,
        "ticks": queue_page.has_ticks(request),
        "here": queue_page.here(request),
        "count": len(moved) + len(new),
        "url": _url(request),
        "rows": queue_rows.rows(
            moved, who, opened=_opened(request), archive=queue_page.is_archive(request)
        ),
        "oob": True,
        "overtaken": overtaken,
        "followed": followed,
        "ended": states.ENDED,
    }
    return render(request, "review/approvals.html#poll", context)


def _running_out(request: HttpRequest, same: list[Operation]) -> dict[str, Any]:
    """Rows that end within half an hour, and how many of them came near just now."""
    clock = access.viewer(request).clock
    plain = [facts.operation(op) for op in same]
    soon = [each for each in plain if waiting.is_expiring(each, clock)]
    fresh = [op for op in soon if waiting.just_came_near(op, clock, poll_seconds=POLL_SECONDS)]
    aloud = f"{count_of(len(fresh), 'proposal')} will expire in 30 minutes." if fresh else ""
    return {
        "lefts": [Left(id=each.id, words=waiting.time_left(each, clock)) for each in soon],
        "aloud": aloud,
    }


def _overtaken(request: HttpRequest, found: dict[UUID, Operation]) -> Operation | None:
    """The opened proposal, where it or its order moved since it was drawn."""
    opened = _opened(request)
    op = found.get(opened) if opened else None
    if op is None:
        return None
    drawn = request.GET.get("drawn_anew") or request.GET.get("drawn", "")
    return op if drawn and drawn != f"{op.version}.{op.order.version}" else None


def _followed(request: HttpRequest, found: dict[UUID, Operation]) -> Operation | None:
    """The opened refund that was approved on this very page, where it moved since: the place of
    the press says how it went, as it had promised."""
    opened = _opened(request)
    op = found.get(opened) if opened else None
    drawn = request.GET.get("followed", "")
    return op if op is not None and drawn and drawn != str(op.version) else None


def _opened(request: HttpRequest) -> UUID | None:
    try:
        return UUID(request.GET.get("open", ""))
    except ValueError:
        return None


def _url(request: HttpRequest) -> str:
    gone = ("since", "moved", "done", "drawn", "drawn_anew", "followed")
    query = {key: value for key, value in request.GET.items() if key not in gone and value}
    return f"{request.path}?{urlencode(query)}" if query else request.path
