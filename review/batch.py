"""One press for several objects: each in a transaction of its own, with its own stored outcome.

The intent is stored first, without outcomes. Then each object is locked, done and noted in its
intent together, so that what is noted was done and nothing else was. The same press again does
nothing twice; where a server died in between it goes on with what has no outcome yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from refunds.domain.errors import Refusal, StaleOperation
from review import access, intent
from review.intent import Hidden, Pressed
from review.models import Intent

Outcome = dict[str, Any]


def press_each(
    request: HttpRequest,
    *,
    form: str,
    keys: Sequence[str],
    check: Callable[[Hidden], None],
    act: Callable[[str], Outcome],
) -> Pressed:
    """Do `act` for each key; `check` raises Refusal when the form is not the one that was drawn.

    The row's outcome is `{"asked": [key], "items": {key: outcome}}`; an object that was refused
    has `{"refused": code, "says": sentence}` there.
    """
    person = access.viewer(request).person
    try:
        hidden = intent.posted(request)
        check(hidden)
        row, first = Intent.objects.get_or_create(
            pk=hidden.intent,
            defaults={
                "person": person,
                "form": form,
                "object_ref": hidden.shown_digest[:160],
                "outcome": {"asked": list(keys), "items": {}},
            },
        )
        intent.require_own(row, person.pk, form, hidden.shown_digest[:160])
    except Refusal as refusal:
        return Pressed(refusal=refusal)
    for key in keys:
        _one(request, row, key, act)
    row.refresh_from_db()
    return Pressed(row=row, repeated=not first)


def _one(request: HttpRequest, row: Intent, key: str, act: Callable[[str], Outcome]) -> None:
    try:
        with transaction.atomic():
            locked = Intent.objects.select_for_update().get(pk=row.pk)
            if key not in locked.outcome["items"]:
                locked.outcome["items"][key] = act(key)
                locked.save(update_fields=["outcome"])
    except StaleOperation:
        _note(row, key, "stale_page", "Somebody else moved it first.")
    except Refusal as refusal:
        _note(row, key, refusal.code, refusal.detail)
        if refusal.status == 403:
            access.refused(access.viewer(request).person, row.form, key, refusal.code)


def _note(row: Intent, key: str, code: str, says: str) -> None:
    """Store why an object was left out, unless a press beside this one has done it meanwhile."""
    with transaction.atomic():
        locked = Intent.objects.select_for_update().get(pk=row.pk)
        locked.outcome["items"].setdefault(key, {"refused": code, "says": says})
        locked.save(update_fields=["outcome"])
