"""The approvals queue, the opened proposal, and what is pressed on it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds import approvals as verbs
from refunds.consent import Shown
from refunds.ledger import lock
from refunds.models import Operation
from refunds.queries import pages
from review import access, intent, proposal, roles
from review.context import counts
from review.intent import Hidden, Pressed
from review.models import Intent
from review.paging import PAGE_ROWS, changed_since, cursor_instant, signature

TABS = ("to_approve", "stale", "all")


@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """The list. `tab`, `after` (cursor), `open` (an operation), `done` (a press of this reader);
    `since` is a poll: 204, or one line that says how many rows changed."""
    access.require(request, roles.SEE)
    if "since" in request.GET:
        return _poll(request)
    opened = _uuid(request.GET.get("open"))
    pressed = None
    done = _uuid(request.GET.get("done"))
    if done is not None:
        found = Intent.objects.filter(pk=done, person=access.viewer(request).person).first()
        pressed = Pressed(row=found) if found else None
    return _page(request, opened, pressed)


def _poll(request: HttpRequest) -> HttpResponse:
    rows = _rows(request, _tab(request)).values_list("pk", "version")[:PAGE_ROWS]
    changed = changed_since(request.GET["since"], rows)
    if not changed:
        return HttpResponse(status=204)
    query = {key: value for key, value in request.GET.items() if key not in ("since", "done")}
    url = f"{request.path}?{urlencode(query)}" if query else request.path
    return render(request, "review/parts.html#changed", {"count": changed, "url": url})


def _tab(request: HttpRequest) -> str:
    tab = request.GET.get("tab", TABS[0])
    return tab if tab in TABS else TABS[0]


def _rows(request: HttpRequest, tab: str) -> QuerySet[Operation]:
    after = request.GET.get("after", "")
    at, _, last = after.rpartition("~")
    last_id = _uuid(last)
    if tab == "all":
        rows = pages.everything()
        return rows.filter(pk__lt=last_id) if last_id else rows
    rows = pages.waiting(stale=tab == "stale")
    if last_id is None:
        return rows
    return pages.after_due(rows, cursor_instant(at), last_id)


def _page(
    request: HttpRequest, opened: UUID | None, pressed: Pressed | None, *, status: int = 200
) -> HttpResponse:
    who, tab = access.viewer(request), _tab(request)
    found = list(_rows(request, tab)[: PAGE_ROWS + 1])
    more = len(found) > PAGE_ROWS
    found = found[:PAGE_ROWS]
    slip = _slip(request, opened) if opened else None
    listed = {op.pk: op for op in found}
    shown = list(listed.values())
    if slip is not None and slip.op.pk not in listed:
        shown.insert(0, slip.op)
    given = pages.approvals_of([op.pk for op in shown])
    cursor = (
        f"{found[-1].due_at.isoformat() if found[-1].due_at else ''}~{found[-1].pk}" if more else ""
    )
    context: dict[str, Any] = {
        "clock": who.clock,
        "tab": tab,
        "counts": counts(request),
        "rows": [
            proposal.row(op, given[op.pk], who, is_open=slip is not None and op.pk == slip.op.pk)
            for op in shown
        ],
        "slip": slip,
        "pressed": pressed,
        "typed": request.POST,
        "next": cursor,
        "signature": signature((op.pk, op.version) for op in found),
        "after": request.GET.get("after", ""),
    }
    return render(request, "review/approvals.html", context, status=status)


def _slip(request: HttpRequest, operation_id: UUID) -> proposal.Slip | None:
    found = pages.operation(operation_id)
    seen = _whole(request.POST.get("order_version", ""))
    return (
        proposal.slip(found, access.viewer(request), seen_version=seen if seen > 0 else None)
        if found
        else None
    )


@require_POST
def approve(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """One person's yes. Posts intent, obj_version, shown_digest, fingerprint (hex),
    order_version, and separate_refund_confirmed where the page asks for it."""
    access.operation(request, operation_id, roles.APPROVE)
    pressed = intent.press(
        request,
        form="approve",
        object_ref=str(operation_id),
        act=lambda hidden: _approve(request, operation_id, hidden),
    )
    return _answer(request, operation_id, pressed)


def _approve(request: HttpRequest, operation_id: UUID, hidden: Hidden) -> dict[str, Any]:
    seen = _locked_slip(request, operation_id)
    # The verb's own refusals name more than ours, so it speaks first; all is one transaction.
    approved = verbs.approve(
        operation_id,
        access.viewer(request).person,
        Shown(
            fingerprint=_bytes(request.POST.get("fingerprint", "")),
            order_version=_whole(request.POST.get("order_version", "")),
            separate_refund_confirmed=request.POST.get("separate_refund_confirmed") == "on",
        ),
    )
    _require_same(seen, hidden)
    return {"act": "approve", "complete": approved.complete, "state": approved.operation.state}


@require_POST
def reject(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """A lead's no. Posts intent, obj_version, shown_digest and reason (10 characters or more)."""
    access.operation(request, operation_id, roles.REJECT)
    pressed = intent.press(
        request,
        form="reject",
        object_ref=str(operation_id),
        act=lambda hidden: _reject(request, operation_id, hidden),
    )
    return _answer(request, operation_id, pressed)


def _reject(request: HttpRequest, operation_id: UUID, hidden: Hidden) -> dict[str, Any]:
    seen = _locked_slip(request, operation_id)
    rejected = verbs.reject(
        operation_id,
        access.viewer(request).person,
        reason=request.POST.get("reason", ""),
        version=hidden.obj_version,
    )
    _require_same(seen, hidden)
    return {"act": "reject", "state": rejected.state}


@require_POST
def take_back(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """Take an approval back before sending starts. Posts intent, obj_version, shown_digest, and
    `back` = operation to return to the operation's page."""
    access.operation(request, operation_id, roles.TAKE_BACK)
    pressed = intent.press(
        request,
        form="take_back",
        object_ref=str(operation_id),
        act=lambda hidden: _take_back(request, operation_id, hidden),
    )
    if request.POST.get("back") == "operation" and pressed.row is not None:
        url = reverse("operation", args=[operation_id])
        return _after(request, f"{url}?{urlencode({'done': pressed.row.pk})}")
    return _answer(request, operation_id, pressed)


def _take_back(request: HttpRequest, operation_id: UUID, hidden: Hidden) -> dict[str, Any]:
    taken = verbs.revoke(operation_id, access.viewer(request).person, version=hidden.obj_version)
    return {"act": "take_back", "state": taken.state}


def _locked_slip(request: HttpRequest, operation_id: UUID) -> proposal.Slip:
    lock(operation_id)
    slip = _slip(request, operation_id)
    assert slip is not None, "an operation is never deleted"
    return slip


def _require_same(seen: proposal.Slip, hidden: Hidden) -> None:
    hidden.require_same(
        version=seen.op.version,
        shown_digest=seen.shown_digest,
        moved=f"The facts you were looking at changed; order {seen.facts.order_ref} is at version"
        f" {seen.facts.order_version} now. Your text is kept below.",
    )


def _answer(request: HttpRequest, operation_id: UUID, pressed: Pressed) -> HttpResponse:
    """The state read back: a fragment for htmx, a redirect after a first plain press, and the
    page itself for a refusal or a repeated press."""
    if request.headers.get("HX-Request"):
        found = pages.operation(operation_id)
        assert found is not None, "an operation is never deleted"
        who = access.viewer(request)
        given = pages.approvals_of([operation_id])[operation_id]
        context = {
            "clock": who.clock,
            "row": proposal.row(found, given, who, is_open=True),
            "slip": _slip(request, operation_id),
            "pressed": pressed,
            "typed": request.POST,
            "tab": _tab(request),
            "oob": True,
        }
        return render(request, "review/approvals.html#entry", context, status=pressed.status)
    if pressed.row is not None and not pressed.repeated:
        query = {"open": operation_id, "done": pressed.row.pk}
        return _after(request, f"{reverse('approvals')}?{urlencode(query)}#row-{operation_id}")
    return _page(request, operation_id, pressed, status=pressed.status)


def _after(request: HttpRequest, url: str) -> HttpResponse:
    """Where a press leads: 303, or for htmx the same by its own header."""
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return HttpResponseRedirect(url, status=303)


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else -1
