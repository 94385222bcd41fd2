"""Calling a refund off before it is sent, from its own page or from the opened proposal."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from refunds import withdrawal
from refunds.ledger import lock
from refunds.proposal import Caller
from review import access, intent, roles
from review.intent import Hidden
from review.presenters.words import state_word
from review.views.operation import page


@require_POST
def withdraw(request: HttpRequest, operation_id: UUID) -> HttpResponse:
    """End what the reader proposed, or as a lead anybody's. Posts intent, obj_version,
    shown_digest, and `reason`: at most 500 characters, may be empty."""
    access.operation(request, operation_id, roles.WITHDRAW)
    pressed = intent.press(
        request,
        form="withdraw",
        object_ref=str(operation_id),
        act=lambda hidden: _withdraw(request, operation_id, hidden),
    )
    if pressed.row is not None and not pressed.repeated:
        query = urlencode({"done": pressed.row.pk})
        url = f"{reverse('operation', args=[operation_id])}?{query}"
        return HttpResponseRedirect(url, status=303)
    found = access.operation(request, operation_id, roles.SEE)
    return page(request, found, pressed)


def _withdraw(request: HttpRequest, operation_id: UUID, hidden: Hidden) -> dict[str, Any]:
    before = lock(operation_id).operation
    # The verb's own refusals name more than ours, so it speaks first; all is one transaction.
    ended = withdrawal.withdraw(
        operation_id,
        by=Caller(person=access.viewer(request).person),
        reason=request.POST.get("reason", ""),
    )
    # Withdrawing depends on the state alone: facts of the order that moved do not matter to it.
    hidden.require_same(
        version=before.version,
        shown_digest=hidden.shown_digest,
        moved=f"The refund changed while you looked: it is {state_word(before.state)} now.",
    )
    return {"act": "withdraw", "state": ended.state}
