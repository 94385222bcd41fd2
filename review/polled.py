"""The poll of a page whose rows stay where they are: nothing, or how many changed and a way to see."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from review.paging import changed_since


def answer(
    request: HttpRequest, rows: Iterable[tuple[object, int]], *, url: str = ""
) -> HttpResponse:
    """204 where `rows` are what the page's `since` was made of. `url`: what shows them anew."""
    count = changed_since(request.GET["since"], rows)
    if not count:
        return HttpResponse(status=204)
    context = {"count": count, "url": url or request.path}
    return render(request, "review/parts.html#changed", context)
