"""The rep's page: what may be said about an order's refunds, and nothing that moves money."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from refunds.queries import orders
from refunds.queries import search as search_queries
from review import access, case_reads, roles, status_page


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """One field; `order` leads to the page of the order with this reference, or of the one that
    a case, a ticket or an operation of this name is about; otherwise it says that there is none."""
    who = access.require(request, roles.SEE_STATUS)
    ref = request.GET.get("order", "").strip()
    found = _order_ref(ref) if ref else None
    if found is not None:
        return HttpResponseRedirect(reverse("order_status", args=[found]))
    return render(request, "review/status.html", {"clock": who.clock, "ref": ref, "order": None})


def _order_ref(text: str) -> str | None:
    """The order that the text names; None for none, or for several."""
    if orders.known(text) is not None:
        return text
    case = case_reads.called(text)
    if case is not None and case.payment is not None:
        return case.payment.order.ref
    meant = search_queries.newest_meant(text).values_list("order__ref", flat=True)
    refs = list(meant.distinct().order_by("order__ref")[:2])
    return refs[0] if len(refs) == 1 else None


@require_GET
def order_status(request: HttpRequest, order_ref: str) -> HttpResponse:
    """What to say about each refund of one order; `since` is a poll (204 or the whole panel)."""
    who = access.viewer(request)
    if not (who.may(roles.SEE_STATUS) or who.may(roles.SEE)):
        raise Http404
    access.require(request, roles.SEE_STATUS, order_ref)
    found = orders.known(order_ref)
    if found is None:
        raise Http404
    part = orders.operations(found)
    told = status_page.told_of(part.operations, who)
    elsewhere = orders.elsewhere(found)
    context: dict[str, Any] = {
        "clock": who.clock,
        "ref": order_ref,
        "order": found,
        "told": told,
        "more": part.more,
        "elsewhere": elsewhere,
        "mark": status_page.mark(told, elsewhere),
        "may_propose": who.may(roles.PROPOSE),
    }
    if "since" not in request.GET:
        return render(request, "review/status.html", context)
    if request.GET["since"] == context["mark"]:
        return HttpResponse(status=204)
    return render(request, "review/status.html#moved", context | {"oob": True})
