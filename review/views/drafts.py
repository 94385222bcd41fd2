"""Keeping and discarding drafts: no act, no trail, and nothing that anybody else reads."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from reconciliation import case_work
from reconciliation.models import Case
from refunds.domain.errors import Refusal
from review import access, drafts


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep what stands in a form now. Posts the form's own fields with `draft_of` and `intent`.

    204 kept or nothing to keep; 422 with a plain sentence for a text that may not be stored.
    """
    try:
        posted, who = request.POST.dict(), access.viewer(request)
        if drafts.save(posted, who.person.pk):
            _hold_on(drafts.case_of(posted), who)
    except Refusal as refusal:
        return HttpResponse(refusal.detail, status=422, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


def _hold_on(case_id: int | None, who: access.Viewer) -> None:
    """Whoever types about a case is using it: their claim does not end meanwhile."""
    case = Case.objects.filter(pk=case_id).first() if case_id is not None else None
    if case is not None:
        case_work.extend(case, who.person, who.clock.now)


@require_POST
def discard(request: HttpRequest) -> HttpResponse:
    """Forget a draft, and draw the page that the form stood on again."""
    drafts.discard_posted(request.POST.dict(), access.viewer(request).person.pk)
    return HttpResponseRedirect(_behind(request), status=303)


def _behind(request: HttpRequest) -> str:
    page = request.headers.get("Referer", "")
    return page if url_has_allowed_host_and_scheme(page, {request.get_host()}) else "/"
