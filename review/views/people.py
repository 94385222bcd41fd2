"""People and roles: who may do what, and changes that wait for another admin."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds.domain.roles import ROLES
from refunds.models import Person
from review import access, intent, roles
from review import people as verbs
from review.intent import Hidden, Pressed
from review.models import RoleChange

PAST_ROWS = 50


@require_GET
def everybody(request: HttpRequest) -> HttpResponse:
    """The list, the proposals that wait, and the last changes."""
    access.require(request, roles.ADMINISTER)
    return _page(request, None)


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Add a person without a role. Posts the hidden values and `username`.

    The first password is in this answer and nowhere else; a repeated press does not show it.
    """
    who = access.require(request, roles.ADMINISTER, "people")
    shown: dict[str, str] = {}

    def act(hidden: Hidden) -> dict[str, Any]:
        person, password = verbs.add(request.POST.get("username", "").strip(), by=who.person)
        shown.update(name=person.username, password=password)
        return {"act": "people_add", "person": person.pk}

    pressed = intent.press(request, form="people_add", object_ref="people", act=act)
    return _page(request, pressed, about="add", shown=shown)


@require_POST
def propose(request: HttpRequest, person_id: int) -> HttpResponse:
    """Propose other roles. Posts the hidden values, `roles` (many), `active`, `reason`."""
    who = access.require(request, roles.ADMINISTER, f"person {person_id}")
    _require_stored(Person, person_id)

    def act(hidden: Hidden) -> dict[str, Any]:
        change = verbs.propose(
            person_id,
            roles=request.POST.getlist("roles"),
            active=request.POST.get("active") == "on",
            reason=request.POST.get("reason", ""),
            by=who.person,
        )
        return {"act": "people_change", "change": change.pk}

    return _press(request, "people_change", f"person {person_id}", act, about=str(person_id))


@require_POST
def decide(request: HttpRequest, change_id: int) -> HttpResponse:
    """Confirm or decline a proposal. Posts the hidden values and `answer` = confirm or decline."""
    who = access.require(request, roles.ADMINISTER, f"role change {change_id}")
    _require_stored(RoleChange, change_id)
    confirmed = request.POST.get("answer") == "confirm"

    def act(hidden: Hidden) -> dict[str, Any]:
        verbs.decide(change_id, confirmed=confirmed, by=who.person)
        return {"act": "people_decide", "confirmed": confirmed}

    return _press(request, "people_decide", f"role change {change_id}", act, about="changes")


def _press(request: HttpRequest, form: str, ref: str, act: Any, *, about: str) -> HttpResponse:
    pressed = intent.press(request, form=form, object_ref=ref, act=act)
    if pressed.row is not None and not pressed.repeated:
        return HttpResponseRedirect(reverse("people"), status=303)
    return _page(request, pressed, about=about)


def _page(
    request: HttpRequest,
    pressed: Pressed | None,
    *,
    about: str = "",
    shown: dict[str, str] | None = None,
) -> HttpResponse:
    who = access.viewer(request)
    context: dict[str, Any] = {
        "clock": who.clock,
        "rows": [_row(person, who.person, about, request) for person in _people()],
        "changes": [
            {
                "change": change,
                "form": _drawn(),
                "own": who.person.pk == change.proposed_by_id,
                "about_reader": who.person.pk == change.person_id,
            }
            for change in verbs.open_changes()
        ],
        "past": RoleChange.objects.select_related("person", "proposed_by", "decision__by")
        .exclude(kind=RoleChange.Kind.CHANGE, decision=None)
        .order_by("-pk")[:PAST_ROWS],
        "add_form": _drawn(),
        "pressed": pressed,
        "about": about,
        "typed": request.POST,
        "shown": shown,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/people.html", context, status=status)


def _people() -> list[Person]:
    return list(Person.objects.prefetch_related("groups").order_by("-is_active", "username"))


def _row(person: Person, reader: Person, about: str, request: HttpRequest) -> dict[str, Any]:
    """One person; after a refusal the ticks and the text of their form are the posted ones."""
    held = {group.name for group in person.groups.all()}
    again = about == str(person.pk)
    ticked = set(request.POST.getlist("roles")) if again else held
    active = request.POST.get("active") == "on" if again else person.is_active
    return {
        "person": person,
        "roles": [role.replace("_", " ") for role in ROLES if role in held],
        "ticks": [(role, role.replace("_", " "), role in ticked) for role in ROLES],
        "active": active,
        "own": person.pk == reader.pk,
        "open": again,
        "reason": request.POST.get("reason", "") if again else "",
        "form": _drawn(),
    }


def _drawn() -> Hidden:
    """A proposal is compared with the person's roles when it is confirmed, so no version here."""
    return intent.drawn(version=0, shown_digest="people")


def _require_stored(kind: Any, pk: int) -> None:
    if not kind.objects.filter(pk=pk).exists():
        raise Http404
