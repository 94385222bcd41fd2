"""Orders: the list, the page of one order, and what is pressed on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds import freezing
from refunds.models import Order
from refunds.queries import orders, results, search
from review import access, intent, order_page, proposing, remedying, roles, status_page
from review.access import Viewer
from review.intent import Hidden, Pressed
from review.models import Intent
from review.order_page import Shown
from review.paging import PAGE_ROWS, whole
from review.presenters import balance
from review.remedying import Remedy

OBJECT_REF_LENGTH = 160


@require_GET
def listed(request: HttpRequest) -> HttpResponse:
    """Orders, newest first; `q` is what the reader looks for, `after` a cursor. A text that is
    an order's whole reference leads straight to it."""
    who = access.require(request, roles.SEE)
    text = request.GET.get("q", "").strip()
    if text and orders.known(text) is not None:
        return HttpResponseRedirect(reverse("order", args=[text]))
    rows = orders.listed(text)
    after = whole(request.GET.get("after"))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    found = list(rows[: PAGE_ROWS + 1])
    more = len(found) > PAGE_ROWS
    found = found[:PAGE_ROWS]
    beside = orders.beside(found)
    context = {
        "clock": who.clock,
        "q": text,
        "rows": [(order, beside[order.pk]) for order in found],
        "after": after,
        "next": urlencode({"q": text, "after": found[-1].pk}) if more else "",
        "scanned": search.SCANNED_MAX,
    }
    return render(request, "review/orders.html", context)


@require_GET
def order(request: HttpRequest, order_ref: str) -> HttpResponse:
    """The page of one order, reduced for reps. `show` (a term of the sum) and `payment` filter its
    refunds, `before` and `versions` go on in a list, `done` is a press of the reader's own;
    `remedy_of` fills the propose form; `since` is a poll: 204, or the parts that moved."""
    who = _reader(request)
    found = _known(order_ref)
    if "since" in request.GET:
        return _poll(request, found)
    return _page(request, found, who, _done(request, who))


def _reader(request: HttpRequest) -> Viewer:
    """Those who read every page, and reps, who see the reduced one; 404 for everybody else."""
    who = access.viewer(request)
    if not (who.may(roles.SEE) or who.may(roles.PROPOSE)):
        raise Http404
    return who


def _known(ref: str) -> Order:
    found = orders.known(ref)
    if found is None:
        raise Http404
    return found


def _done(request: HttpRequest, who: Viewer) -> Pressed | None:
    done = _uuid(request.GET.get("done"))
    row = Intent.objects.filter(pk=done, person=who.person).first() if done else None
    return Pressed(row=row, repeated="again" in request.GET) if row else None


def _page(request: HttpRequest, found: Order, who: Viewer, pressed: Pressed | None) -> HttpResponse:
    status = pressed.status if pressed else 200
    if not who.may(roles.SEE):
        context = _context(request, found, who, order_page.sums_of(found), pressed)
        rows = orders.operations(found)
        context |= {"told": status_page.told_of(rows.operations, who)}
        return render(request, "review/order_reduced.html", context, status=status)
    page = order_page.page(found, who, _shown(request))
    context = _context(request, found, who, page.sums, pressed)
    context |= {
        "page": page,
        "may_freeze": who.may(roles.FREEZE),
        "freeze": intent.drawn(version=found.version, shown_digest=_freeze_digest(found)),
    }
    return render(request, "review/order.html", context, status=status)


def _context(
    request: HttpRequest,
    found: Order,
    who: Viewer,
    sums: list[balance.Sum],
    pressed: Pressed | None,
) -> dict[str, Any]:
    refusal = pressed.refusal if pressed else None
    about = _about(pressed)
    again = about if refusal and refusal.code == "already_done" else None
    existing = results.find(about) if about else None
    return {
        "clock": who.clock,
        "order": found,
        "sums": sums,
        "totals": balance.totals(sums).items(),
        "mark": order_page.mark(found, sums),
        "form": proposing.form(found, sums, who, again=again, remedy=_remedy(request, found, who)),
        "pressed": pressed,
        "acted": _acted(request),
        "disputed": any(each.payment.state in ("disputed", "reversed") for each in sums),
        "existing": order_page.row(existing, who) if existing else None,
        "typed": request.POST,
        "reads": who.may(roles.SEE),
        "sees_status": who.may(roles.SEE_STATUS),
        "reduced": not who.may(roles.SEE),
    }


def _remedy(request: HttpRequest, found: Order, who: Viewer) -> Remedy | None:
    """The refund that the form makes good for: of the address, or of the form that was posted."""
    first = _uuid(request.POST.get("remedy_of") or request.GET.get("remedy_of"))
    return remedying.remedy(found, first, who) if first else None


def _acted(request: HttpRequest) -> str:
    """Which form of the page a refusal belongs to: propose, freeze, or none."""
    here = request.resolver_match.url_name if request.resolver_match else ""
    return "freeze" if here == "unfreeze" else here or ""


def _about(pressed: Pressed | None) -> UUID | None:
    """The operation that a press made, or that stands in its way."""
    if pressed is None:
        return None
    if pressed.row is not None:
        return _uuid(pressed.row.outcome.get("operation"))
    return _uuid(pressed.refusal.operation_id) if pressed.refusal else None


def _shown(request: HttpRequest) -> Shown:
    show = request.GET.get("show", "")
    return Shown(
        show=show if show in balance.SHOWN_STATES else "",
        payment_id=whole(request.GET.get("payment")),
        before=_uuid(request.GET.get("before")),
        versions_before=whole(request.GET.get("versions")),
    )


def _poll(request: HttpRequest, found: Order) -> HttpResponse:
    who = access.viewer(request)
    sums = order_page.sums_of(found)
    mark = order_page.mark(found, sums)
    since = request.GET["since"]
    if since == mark:
        return HttpResponse(status=204)
    before = order_page.refundable_of(since) if who.may(roles.PROPOSE) else {}
    context = {
        "clock": who.clock,
        "order": found,
        "sums": sums,
        "totals": balance.totals(sums).items(),
        "mark": mark,
        "reduced": not who.may(roles.SEE),
        "moved": [
            (each, before[each.payment.id])
            for each in sums
            if before.get(each.payment.id, each.refundable_minor) != each.refundable_minor
        ],
        "oob": True,
    }
    return render(request, "review/order.html#moved", context)


@require_POST
def propose(request: HttpRequest, order_ref: str) -> HttpResponse:
    """Propose a refund. Posts intent, obj_version, shown_digest and the fields of
    `proposing.propose`; for reps and whoever else may propose."""
    _reader(request)
    found = _known(order_ref)
    who = access.require(request, roles.PROPOSE, order_ref)
    first = request.POST.get("remedy_of", "")
    if first:
        access.require(request, roles.CHOOSE_REMEDY, order_ref)
    pressed = intent.press(
        request,
        form="remedy" if first else "propose",
        object_ref=(first or order_ref)[:OBJECT_REF_LENGTH],
        act=lambda hidden: proposing.propose(found, who, hidden, request.POST.dict()),
    )
    if pressed.row is not None:
        return _after(request, order_ref, pressed)
    if request.headers.get("HX-Request"):
        fresh = _known(order_ref)
        context = _context(request, fresh, who, order_page.sums_of(fresh), pressed)
        return render(request, "review/order.html#propose", context, status=pressed.status)
    return _page(request, _known(order_ref), who, pressed)


@require_POST
def freeze(request: HttpRequest, order_ref: str) -> HttpResponse:
    """Freeze every refund of the order. Posts intent, obj_version, shown_digest, reason."""
    return _freeze(request, order_ref, "freeze", freezing.freeze)


@require_POST
def unfreeze(request: HttpRequest, order_ref: str) -> HttpResponse:
    """Lift the freeze. Posts intent, obj_version, shown_digest, reason."""
    return _freeze(request, order_ref, "unfreeze", freezing.unfreeze)


def _freeze(request: HttpRequest, ref: str, form: str, verb: Callable[..., Order]) -> HttpResponse:
    _reader(request)
    _known(ref)
    who = access.require(request, roles.FREEZE, ref)

    def act(hidden: Hidden) -> dict[str, Any]:
        reason = request.POST.get("reason", "")
        done = verb(ref, who.person, reason=reason, version=hidden.obj_version)
        return {"act": form, "version": done.version}

    pressed = intent.press(request, form=form, object_ref=ref[:OBJECT_REF_LENGTH], act=act)
    if pressed.row is not None:
        return _after(request, ref, pressed)
    return _page(request, _known(ref), who, pressed)


def _freeze_digest(found: Order) -> str:
    return intent.digest_of(found.ref, found.frozen)


def _after(request: HttpRequest, ref: str, pressed: Pressed) -> HttpResponse:
    """Where a recorded press leads: the page with its result, and that it was a repeat."""
    assert pressed.row is not None
    query = {"done": str(pressed.row.pk)} | ({"again": "1"} if pressed.repeated else {})
    url = f"{reverse('order', args=[ref])}?{urlencode(query)}#result"
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return HttpResponseRedirect(url, status=303)


def _uuid(text: object) -> UUID | None:
    try:
        return UUID(str(text)) if text else None
    except ValueError:
        return None
