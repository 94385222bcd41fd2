"""Search: a whole identifier opens its page; the beginning of one lists what begins with it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from reconciliation.models import Case
from refunds.models import Operation, Order
from refunds.queries import search as queries
from review import access, case_reads, roles


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """`q` is an operation id, a business key, or a reference of an order, payment, refund or
    case; also a ticket, or what pages print of an operation id, of the newest operations.

    Whoever may only read the status page is led there with the same text.
    """
    who = access.viewer(request)
    text = request.GET.get("q", "").strip()
    if who.may(roles.SEE_STATUS) and not who.may(roles.SEE):
        return HttpResponseRedirect(reverse("status", query={"order": text}))
    access.require(request, roles.SEE)
    case = case_reads.called(text)
    found = queries.find(text)
    if case is not None and found.exact is None:
        return HttpResponseRedirect(_page_of_case(case))
    if found.exact is not None:
        return HttpResponseRedirect(_page_of(found.exact))
    context = {
        "clock": who.clock,
        "q": text,
        "found": found,
        "rows_max": queries.GROUP_ROWS_MAX,
        "scanned_max": queries.SCANNED_MAX,
        "length_max": queries.TEXT_LENGTH_MAX,
    }
    return render(request, "review/search.html", context)


def _page_of_case(case: Case) -> str:
    about = case.operation or case.payment
    if about is not None:
        return _page_of(about)
    return f"{reverse('unknown', query={'tab': 'person'})}#row-case-{case.pk}"


def _page_of(hit: queries.Hit) -> str:
    if isinstance(hit, Operation):
        return reverse("operation", args=[hit.pk])
    return reverse("order", args=[hit.ref if isinstance(hit, Order) else hit.order.ref])
