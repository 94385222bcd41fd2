"""What somebody typed and did not submit: kept on the server for 7 days, read by its writer alone.

A drafted form carries one hidden value, `draft_of`: whose text it would be, of which form and
about what, signed when the form was drawn. So the text of a form whose session ended in between
can be kept for the person it was drawn for, and for nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from refunds.domain.errors import Refusal
from refunds.text import check_text
from review.models import Draft, Intent
from review.paging import whole

KEPT = timedelta(days=7)
FIELD_LENGTH_MAX = 2_000
_SALT = "review.drafts"
# No session is older, so no form that is still open is.
_FORM_AGE_MAX = timedelta(hours=24)
_PER_PERSON_MAX = 100

_WISH: Final = ("payment", "amount", "reason_code", "reason_text", "ticket_ref", "asked_by")

# form -> the fields that are kept. Never a tick (it means "I looked"), a password or a code.
FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "reject": ("reason", "reason_code"),
    "withdraw": ("reason",),
    "stop": ("reason",),
    "pause": ("reason",),
    "acknowledge": ("note",),
    "fact_propose": ("fact", "seconds", "scope", "days", "reason"),
    "agent_create": ("name", "owner"),
    "propose": _WISH,
    "remedy": _WISH,
    "freeze": ("reason",),
    "unfreeze": ("reason",),
    "resolve": (
        "reason",
        *(
            f"{name}_{choice}"
            for name, choices in {
                "ref": ("happened", "different", "accept_figure", "correct"),
                "amount": ("different", "accept_figure", "correct"),
                "ticket": ("explained",),
                "reference": ("recovered", "attach", "remedy"),
            }.items()
            for choice in choices
        ),
        *(f"told_{name}" for name in ("ref", "amount", "currency", "status", "created", "where")),
    ),
    "case_note": ("note",),
    "case_take_over": ("reason",),
    "case_snooze": ("reason",),
    "case_escalate": ("reason",),
    "case_decline": ("reason",),
}
# What is chosen and not typed: alone it is nothing to keep.
_CHOSEN: Final = frozenset({"reason_code", "payment", "told_currency"})


@dataclass(frozen=True, slots=True)
class Kept:
    """The draft of one form for the page that draws it: `fields` is empty where there is none."""

    draft_of: str
    fields: Mapping[str, str]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class _Place:
    person_id: int
    form: str
    object_ref: str


def kept(request: HttpRequest, person_id: int, form: str, object_ref: str) -> Kept:
    """What the reader typed into this form before; the drafts of a request are read once."""
    known = getattr(request, "aftersend_drafts", None)
    if known is None:
        known = _drafts_of(person_id)
        request.aftersend_drafts = known  # type: ignore[attr-defined]
    found = known.get((form, object_ref))
    return Kept(
        draft_of=_sign(_Place(person_id, form, object_ref)),
        fields=found.fields if found else {},
        at=found.at if found else None,
    )


def save(posted: Mapping[str, str], person_id: int) -> bool:
    """Keep the text of a posted form as its draft; False where nothing is kept.

    Nothing is: for another person's form, for one that was submitted already, and for one without
    any typed text, which ends its draft. Raises Refusal for a text that may not be stored.
    """
    place = _place_of(posted)
    if place is None or place.person_id != person_id:
        return False
    if _submitted(posted.get("intent", "")):
        return False
    return _store(place, _fields(posted, place.form))


def case_of(posted: Mapping[str, str]) -> int | None:
    """The case that a posted form is about; None for a form about something else."""
    place = _place_of(posted)
    about_case = place is not None and (place.form == "resolve" or place.form.startswith("case_"))
    return whole(place.object_ref) if place is not None and about_case else None


def keep_unsent(posted: Mapping[str, str]) -> bool:
    """Keep the text of a form that came after its session had ended, for whom it was drawn for."""
    place = _place_of(posted)
    if place is None:
        return False
    try:
        return _store(place, _fields(posted, place.form))
    except Refusal:
        return False


def discard(person_id: int, form: str, object_ref: str) -> None:
    """End one draft."""
    Draft.objects.filter(person_id=person_id, form=form, object_ref=object_ref).delete()


def discard_posted(posted: Mapping[str, str], person_id: int) -> None:
    """End the draft of a posted form, if the form was drawn for this person."""
    place = _place_of(posted)
    if place is not None and place.person_id == person_id:
        discard(place.person_id, place.form, place.object_ref)


def sweep(now: datetime) -> int:
    """Forget what is older than 7 days; returns how many."""
    return Draft.objects.filter(at__lt=now - KEPT).delete()[0]


def _drafts_of(person_id: int) -> dict[tuple[str, str], Draft]:
    mine = Draft.objects.filter(person_id=person_id, at__gte=timezone.now() - KEPT)
    return {(each.form, each.object_ref): each for each in mine[:_PER_PERSON_MAX]}


def _sign(place: _Place) -> str:
    return signing.dumps([place.person_id, place.form, place.object_ref], salt=_SALT)


def _place_of(posted: Mapping[str, str]) -> _Place | None:
    try:
        told: Any = signing.loads(posted.get("draft_of", ""), salt=_SALT, max_age=_FORM_AGE_MAX)
    except signing.BadSignature:
        return None
    return _Place(*told)


def _submitted(intent: str) -> bool:
    try:
        return Intent.objects.filter(pk=UUID(intent)).exists()
    except ValueError:
        return False


def _fields(posted: Mapping[str, str], form: str) -> dict[str, str]:
    fields = {name: posted.get(name, "") for name in FORMS.get(form, ())}
    return {
        name: check_text(text, field=name, length_max=FIELD_LENGTH_MAX)
        for name, text in fields.items()
        if text.strip()
    }


def _store(place: _Place, fields: dict[str, str]) -> bool:
    if not fields.keys() - _CHOSEN:
        discard(place.person_id, place.form, place.object_ref)
        return False
    Draft.objects.update_or_create(
        person_id=place.person_id,
        form=place.form,
        object_ref=place.object_ref,
        defaults={"fields": fields, "at": Now()},
    )
    return True
