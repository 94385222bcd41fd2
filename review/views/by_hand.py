"""The page of what people settled by hand."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from review import access, by_hand, roles
from review.context import counts
from review.paging import PAGE_ROWS, cursor_instant, whole


@require_GET
def by_hand_page(request: HttpRequest) -> HttpResponse:
    """Rulings in force, the newest first; `after`: where a page begins."""
    who = access.require(request, roles.SEE)
    found = by_hand.listed(_after(request))
    shown = found[:PAGE_ROWS]
    context = {
        "clock": who.clock,
        "counts": counts(request),
        "works": who.may(roles.CLAIM),
        "rows": shown,
        "signed": by_hand.signed_lately(who.clock.now),
        "next": f"{shown[-1].at.isoformat()}~{shown[-1].ruling.pk}"
        if len(found) > PAGE_ROWS
        else "",
    }
    return render(request, "review/by_hand.html", context)


def _after(request: HttpRequest) -> tuple[datetime, int] | None:
    at, _, last = request.GET.get("after", "").rpartition("~")
    number = whole(last)
    return None if number is None else (cursor_instant(at), number)
