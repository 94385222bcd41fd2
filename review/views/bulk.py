"""Tick and review: several small proposals listed again, and one press that approves each."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from refunds import approvals as verbs
from refunds.consent import Shown
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import lock
from refunds.queries import pages
from review import access, batch, proposal, queue_page, roles, ticked
from review.given import given_to
from review.intent import Hidden, Pressed
from review.models import Intent
from review.presenters import approval

FORM = "approve_ticked"


@require_http_methods(["GET", "POST"])
def review(request: HttpRequest) -> HttpResponse:
    """List the ticked (`item`, repeated) for review; `remove` takes one out. Changes nothing."""
    who = access.require(request, roles.APPROVE, "ticked")
    if request.method == "GET":
        return HttpResponseRedirect(reverse("approvals"))
    texts = request.POST.getlist("item")
    try:
        ticks = ticked.read(texts, without=request.POST.get("remove", ""))
        found = ticked.review(ticks, who)
    except Refusal as refusal:
        return _list(request, refusal, texts)
    return render(
        request,
        "review/bulk.html",
        {"clock": who.clock, "review": found, "tab": queue_page.tab_of(request)},
    )


def _list(request: HttpRequest, refusal: Refusal, texts: list[str]) -> HttpResponse:
    """The queue again, with what is wrong in front and the ticks as they were."""
    ticks = {_uuid(text.partition(".")[0]) for text in texts}
    context = queue_page.context(
        request, None, None, refusal=refusal, ticked=[each for each in ticks if each]
    )
    return render(request, "review/approvals.html", context, status=refusal.status)


@require_POST
def approve(request: HttpRequest) -> HttpResponse:
    """Approve each listed item by itself. Posts intent, obj_version (how many), shown_digest (of
    the list), and per item its id, versions, fingerprint and digest."""
    access.require(request, roles.APPROVE, "ticked")
    texts = request.POST.getlist("item")
    try:
        ticks = ticked.read(texts)
    except Refusal as refusal:
        return _list(request, refusal, texts)
    by_key = {str(tick.id): tick for tick in ticks}
    pressed = batch.press_each(
        request,
        form=FORM,
        keys=list(by_key),
        check=lambda hidden: _require_drawn(hidden, ticks),
        act=lambda key: _approve_one(request, by_key[key]),
    )
    if pressed.refusal is not None:
        return _list(request, pressed.refusal, texts)
    if pressed.repeated:
        return _result(request, pressed)
    assert pressed.row is not None
    return HttpResponseRedirect(reverse("ticked_result", args=[pressed.row.pk]), status=303)


def _require_drawn(hidden: Hidden, ticks: list[ticked.Tick]) -> None:
    hidden.require_same(
        version=len(ticks),
        shown_digest=ticked.digest(ticks),
        moved="The list that came is not the list that was drawn.",
    )


def _approve_one(request: HttpRequest, tick: ticked.Tick) -> dict[str, Any]:
    """One yes, under the locks of its order; raises Refusal and leaves nothing then."""
    who = access.viewer(request)
    found = pages.operation(tick.id)
    if found is None:
        raise Refusal("not_found", "There is no such proposal.", status=404)
    lock(tick.id)
    seen = proposal.slip(pages.operation(tick.id) or found, who)
    given = given_to([seen.op])[tick.id]
    # The verb's own refusals name more than ours, so it speaks first; all is one transaction.
    approved = verbs.approve(
        tick.id,
        who.person,
        Shown(
            fingerprint=_bytes(tick.fingerprint),
            order_version=tick.order_version,
            siblings=seen.siblings,
        ),
    )
    reader = proposal.reader(seen.op, who, given)
    why = approval.why_not_together(seen.facts, reader, who.clock.now)
    if why:
        raise Refusal("not_together", f"Not approved. {why}")
    if (seen.op.version, seen.shown_digest) != (tick.version, tick.digest):
        raise Refusal(
            "evidence_moved",
            "Not approved. The facts you were looking at changed after the list was drawn.",
            status=409,
        )
    return {"approved": True, "state": approved.operation.state}


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


@require_GET
def result(request: HttpRequest, press: UUID) -> HttpResponse:
    """What one press of a reviewed list did, item by item; the reader's own only. `since` is a
    poll: 204, or the items as they are now."""
    who = access.require(request, roles.SEE)
    row = Intent.objects.filter(pk=press, person=who.person, form=FORM).first()
    if row is None:
        raise Http404
    return _result(request, Pressed(row=row))


def _result(request: HttpRequest, pressed: Pressed) -> HttpResponse:
    assert pressed.row is not None
    told = ticked.outcomes(pressed.row.outcome)
    mark = ".".join(str(op.version) for op, _, _ in told)
    if request.GET.get("since") == mark:
        return HttpResponse(status=204)
    context = {
        "clock": access.viewer(request).clock,
        "pressed": pressed,
        "mark": mark,
        "moving": any(op.state not in states.ENDED for op, _, out in told if out.get("approved")),
        "send_delay": math.ceil(settings.LIMITS.send_delay_seconds),
        "approved": [each for each in told if each[2].get("approved")],
        "left_out": [each for each in told if not each[2].get("approved")],
    }
    part = "#told" if "since" in request.GET else ""
    return render(request, f"review/bulk_result.html{part}", context)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
