"""Signing on a case: the first signature, the second, or saying no to it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from reconciliation import resolutions
from reconciliation.choices import REMEDY
from reconciliation.models import Ruling
from review import access, case_panel, intent, roles
from review.intent import Hidden
from review.paging import whole
from review.views.cases import answer, find


@require_POST
def resolve(request: HttpRequest, case_id: int) -> HttpResponse:
    """The first signature. Posts intent, obj_version, shown_digest, `choice`, `reason` (20
    characters or more) and the choice's own fields, each named with the choice at its end."""
    remedy = request.POST.get("choice") == REMEDY
    found = find(request, case_id, roles.CHOOSE_REMEDY if remedy else roles.RESOLVE)
    person = access.viewer(request).person

    def do(hidden: Hidden) -> dict[str, Any]:
        ruling = resolutions.rule(
            case_id,
            person,
            case_panel.said(request.POST.dict(), found.operation),
            reason=request.POST.get("reason", ""),
            version=hidden.obj_version,
            shown_digest=hidden.shown_digest,
            confirmed_minor=case_panel.confirmed_minor(request.POST.dict(), found.operation),
            intent=hidden.intent,
        )
        return {"act": "resolve", "choice": ruling.choice, "people": ruling.people}

    pressed = intent.press(request, form="resolve", object_ref=str(case_id), act=do)
    return answer(request, case_id, pressed)


@require_POST
def sign(request: HttpRequest, case_id: int) -> HttpResponse:
    """The second signature. Posts intent, obj_version, shown_digest and `ruling`."""
    find(request, case_id, roles.SECOND_SIGN)
    person = access.viewer(request).person

    def do(hidden: Hidden) -> dict[str, Any]:
        ruling = resolutions.sign(
            _named(request, case_id).pk,
            person,
            version=hidden.obj_version,
            shown_digest=hidden.shown_digest,
            intent=hidden.intent,
        )
        return {"act": "sign", "choice": ruling.choice}

    pressed = intent.press(request, form="case_sign", object_ref=str(case_id), act=do)
    if pressed.refusal is not None and pressed.refusal.code == "evidence_moved":
        # The refused press was rolled back; that the first signature is void must stay.
        resolutions.void_if_moved(case_id)
    return answer(request, case_id, pressed)


@require_POST
def decline(request: HttpRequest, case_id: int) -> HttpResponse:
    """No second signature. Posts `ruling` and `reason`, 20 characters or more."""
    find(request, case_id, roles.SECOND_SIGN)
    person = access.viewer(request).person

    def do(hidden: Hidden) -> dict[str, Any]:
        ruling = resolutions.decline(
            _named(request, case_id).pk,
            person,
            reason=request.POST.get("reason", ""),
            intent=hidden.intent,
        )
        return {"act": "decline", "choice": ruling.choice}

    pressed = intent.press(request, form="case_decline", object_ref=str(case_id), act=do)
    return answer(request, case_id, pressed)


def _named(request: HttpRequest, case_id: int) -> Ruling:
    """The ruling that the form was drawn for, if it is one of this case."""
    found = Ruling.objects.filter(pk=whole(request.POST.get("ruling")) or 0, case=case_id).first()
    if found is None:
        raise Http404
    return found
