"""The submit protocol: one press of one drawn form has one effect, on what was on the screen.

Order of the checks: session and permission (before this), the intent, then under the locks of
the object its version, the digest of what was shown, and the rules of the verb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.http import HttpRequest

from refunds.domain.errors import Refusal, StaleOperation
from refunds.domain.fingerprint import digest
from review import access, drafts
from review.models import Intent


@dataclass(frozen=True, slots=True)
class Hidden:
    """The values every changing form carries besides the CSRF token."""

    intent: UUID
    obj_version: int
    shown_digest: str

    def require_same(self, *, version: int, shown_digest: str, moved: str) -> None:
        """Raise Refusal stale_page or evidence_moved unless the screen was today's; `moved` is
        the sentence for the reader."""
        if self.obj_version != version:
            raise _moved("stale_page", moved)
        if self.shown_digest != shown_digest:
            raise _moved("evidence_moved", moved)


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a press led to: its stored intent, or the refusal that left nothing."""

    row: Intent | None = None
    repeated: bool = False
    refusal: Refusal | None = None

    @property
    def status(self) -> int:
        return self.refusal.status if self.refusal else 200


def drawn(*, version: int, shown_digest: str) -> Hidden:
    """The hidden values of a form that is being drawn now; every drawing is a press of its own."""
    return Hidden(uuid4(), version, shown_digest)


def digest_of(*shown: Any) -> str:
    """Hex digest of what is on the screen."""
    return digest([*shown]).hex()


def press(
    request: HttpRequest, *, form: str, object_ref: str, act: Callable[[Hidden], dict[str, Any]]
) -> Pressed:
    """Do `act` once for this drawn form and keep its outcome in the same transaction.

    The same intent again returns the first outcome; two at once wait for each other on its row.
    A refusal rolls everything back; a forbidden act (403) is stored afterwards.
    """
    person = access.viewer(request).person
    try:
        hidden = posted(request)
        with transaction.atomic():
            row, first = Intent.objects.get_or_create(
                pk=hidden.intent,
                defaults={"person": person, "form": form, "object_ref": object_ref},
            )
            if not first:
                require_own(row, person.pk, form, object_ref)
                return Pressed(row=row, repeated=True)
            row.outcome = act(hidden)
            row.save(update_fields=["outcome"])
            row.refresh_from_db(fields=["at"])
            drafts.discard(person.pk, form, object_ref)
        return Pressed(row=row)
    except StaleOperation:
        return Pressed(refusal=_moved("stale_page", "Somebody else moved it first."))
    except Refusal as refusal:
        if refusal.status == 403:
            access.refused(person, form, object_ref, refusal.code)
        return Pressed(refusal=refusal)


def pressed_before(request: HttpRequest) -> Pressed | None:
    """The press that the address names by `done`, if it is one of this reader's own."""
    try:
        done = UUID(request.GET.get("done", ""))
    except ValueError:
        return None
    row = Intent.objects.filter(pk=done, person=access.viewer(request).person).first()
    return Pressed(row=row) if row else None


def posted(request: HttpRequest) -> Hidden:
    """The hidden values of the posted form; raises Refusal form_incomplete."""
    try:
        return Hidden(
            UUID(request.POST.get("intent", "")),
            int(request.POST.get("obj_version", "")),
            request.POST.get("shown_digest", ""),
        )
    except ValueError as error:
        raise Refusal(
            "form_incomplete",
            "Not recorded. The form did not say what was on your screen.",
            what_to_do="Open the page again and use the form that it draws.",
        ) from error


def require_own(row: Intent, person_id: int, form: str, object_ref: str) -> None:
    """Raise Refusal stale_page unless the stored press was of this person, form and object."""
    if (row.person_id, row.form, row.object_ref) != (person_id, form, object_ref):
        raise _moved("stale_page", "This form was already used for something else.")


def _moved(code: str, sentence: str) -> Refusal:
    return Refusal(
        code,
        f"Not recorded. {sentence}",
        status=409,
        what_to_do="Compare with what is there now, and submit again if it still holds.",
    )
