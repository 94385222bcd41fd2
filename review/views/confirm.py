"""Confirm it is you: the form in place over what was pressed, or a page that comes back to it.

Confirming executes nothing. What had been typed and ticked comes back, and the person presses
again.
"""

from __future__ import annotations

import json
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from refunds.models import Person
from review import proof
from review.step_up import STEP_UP_SECONDS, StepUpNeeded

# What a form carries for the server, besides what a person typed or ticked.
_NEVER_KEPT = ("csrfmiddlewaretoken", "password", "code", "credential")
_HIDDEN = ("intent", "obj_version", "shown_digest", "fingerprint", "order_version", "back")
KEPT_LENGTH_MAX = 20_000


def needed(request: HttpRequest, why: StepUpNeeded) -> HttpResponse:
    """The answer to a press that must be confirmed first: 403 `step_up_needed`, and the form."""
    kept = _posted(request) if request.method == "POST" else {}
    context = {
        "asked": proof.asked(_person(request)),
        "words": why.words,
        "to": request.get_full_path(),
        "kept": json.dumps(kept) if kept else "",
    }
    return _draw(request, context, status=403)


@require_http_methods(["GET", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    """Posts `code`, `credential` or `password`; `to` and `kept` say what to come back to."""
    person, to = _person(request), _own_address(request)
    context: dict[str, Any] = {"to": to, "kept": request.POST.get("kept", "")}
    context["words"] = request.POST.get("words", "")[:80] or "go on"
    refused = proof.read(request, person, again=True) if request.method == "POST" else None
    if request.method == "GET" or refused:
        context["asked"] = proof.asked(person, refused)
        return _draw(request, context, status=context["asked"].status)
    request.session.cycle_key()
    context |= {
        "minutes": STEP_UP_SECONDS // 60,
        "seconds": STEP_UP_SECONDS,
        "fields": _fields(context["kept"]),
    }
    if request.headers.get("HX-Request"):
        return render(request, "review/confirm.html#done", context)
    if context["fields"]:
        return render(request, "review/confirmed.html", context)
    return HttpResponseRedirect(to, status=303)


def _draw(request: HttpRequest, context: dict[str, Any], *, status: int) -> HttpResponse:
    fragment = bool(request.headers.get("HX-Request"))
    part = "#panel" if fragment else ""
    response = render(request, f"review/confirm.html{part}", context, status=status)
    if status == 403:
        response["Aftersend-Code"] = "step_up_needed"
    if fragment:
        response["HX-Retarget"], response["HX-Reswap"] = "#slot", "innerHTML"
    return response


def _posted(request: HttpRequest) -> dict[str, list[str]]:
    kept = {name: values for name, values in request.POST.lists() if name not in _NEVER_KEPT}
    return kept if len(json.dumps(kept)) <= KEPT_LENGTH_MAX else {}


def _fields(kept: str) -> list[dict[str, Any]]:
    """Fields of the form to press again: (name, value, whether a person typed it)."""
    try:
        table = json.loads(kept) if kept and len(kept) <= KEPT_LENGTH_MAX else {}
        pairs = [(str(name), str(each)) for name, values in table.items() for each in values]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []
    return [{"name": name, "value": text, "hidden": name in _HIDDEN} for name, text in pairs]


def _own_address(request: HttpRequest) -> str:
    to = request.POST.get("to") or request.GET.get("next", "")
    return to if url_has_allowed_host_and_scheme(to, {request.get_host()}) else "/"


def _person(request: HttpRequest) -> Person:
    return cast(Person, request.user)
