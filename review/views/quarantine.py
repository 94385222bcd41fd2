"""Lifting a quarantine: one person asks when nothing is missing, another one lifts it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from reconciliation import quarantine as verbs
from refunds.ledger.sending import open_quarantine
from review import access, quarantine_page, roles
from review.intent import Hidden
from review.views import sending


def _require_shown(hidden: Hidden) -> None:
    row = open_quarantine()
    if row is not None:
        hidden.require_same(
            version=row.pk,
            shown_digest=quarantine_page.digest(row),
            moved="Not recorded. Somebody else has acted on the quarantine while you looked.",
        )


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Ask to lift it. Posts intent, obj_version, shown_digest, `by_hand` (many: accounts)."""
    who = access.require(request, roles.LIFT, "quarantine")

    def act(hidden: Hidden) -> dict[str, Any]:
        _require_shown(hidden)
        verbs.ask(by=who.person, by_hand=frozenset(request.POST.getlist("by_hand")))
        return {"act": "quarantine_ask"}

    return sending.press(request, "quarantine_ask", "quarantine", act)


@require_POST
def lift(request: HttpRequest) -> HttpResponse:
    """Lift it, as the second of two people. Posts intent, obj_version, shown_digest."""
    who = access.require(request, roles.LIFT, "quarantine")

    def act(hidden: Hidden) -> dict[str, Any]:
        _require_shown(hidden)
        verbs.lift(by=who.person)
        return {"act": "quarantine_lift"}

    return sending.press(request, "quarantine_lift", "quarantine", act)
