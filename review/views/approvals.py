"""The approvals queue, the opened proposal, and what is pressed on it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds import approvals as verbs
from refunds.consent import Shown, came_first
from refunds.domain.rejection import OTHER
from refunds.ledger import lock
from refunds.queries import pages
from review import (
    access,
    facts,
    intent,
    proposal,
    queue_page,
    queue_poll,
    queue_rows,
    roles,
    step_up,
)
from review.intent import Hidden, Pressed
from review.paging import whole
from review.presenters import waiting


@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """The list. `tab`, `after` (cursor), `open` (an operation), `done` (a press of this reader);
    `since` is a poll: 204, or what changed since."""
    access.require(request, roles.SEE)
    if "since" in request.GET:
        return queue_poll.answer(request)
    opened = _uuid(request.GET.get("open"))
    return _page(request, opened, intent.pressed_before(request))


def _page(
    request: HttpRequest, opened: UUID | None, pressed: Pressed | None, *, status: int = 200
) -> HttpResponse:
    slip = queue_page.find_slip(request, opened) if opened else None
    context = queue_page.context(request, slip, pressed)
    return render(request, "review/approvals.html", context, status=status)


@require_POST
def approve(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """One person's yes. Posts intent, obj_version, shown_digest, fingerprint (hex),
    order_version, and separate_refund_confirmed where the page asks for it."""
    found = access.operation(request, operation_id, roles.APPROVE)
    step_up.require_for_tier(request, found.tier)
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
            order_version=whole(request.POST.get("order_version")) or 0,
            siblings=seen.siblings,
            separate_refund_confirmed=request.POST.get("separate_refund_confirmed") == "on",
        ),
    )
    _require_same(seen, hidden)
    return {
        "act": "approve",
        "complete": approved.complete,
        "state": approved.operation.state,
        "dead": [waiting.counts_no_longer(facts.approval(each)) for each in approved.dead],
    }


@require_POST
def reject(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """A lead's no. Posts intent, obj_version, shown_digest, reason (10 characters or more) and
    reason_code (one of the closed list)."""
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
        code=request.POST.get("reason_code") or OTHER,
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
    slip = queue_page.find_slip(request, operation_id)
    assert slip is not None, "an operation is never deleted"
    return slip


def _require_same(seen: proposal.Slip, hidden: Hidden) -> None:
    first = seen.approved_since(hidden.shown_digest)
    if first is not None:
        raise came_first(seen.op.pk, first.approver, "approved", first.at)
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
        slip = queue_page.find_slip(request, operation_id)
        context = queue_page.slip_context(request, slip) | {
            "clock": who.clock,
            "row": queue_rows.rows(
                [found], who, opened=operation_id, archive=queue_page.is_archive(request)
            )[0],
            "pressed": pressed,
            "ticks": request.POST.get("ticks") == "on",
            "here": queue_page.here(request),
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
