"""The reader's own page: who they are here, their time zone, their keys and their theme."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from refunds.models import Person
from review import access, intent, preferences
from review.intent import Hidden, Pressed
from review.models import Preference


@require_GET
def profile(request: HttpRequest) -> HttpResponse:
    """`done` is a press of this reader."""
    return _page(request, intent.pressed_before(request))


@require_POST
def change(request: HttpRequest) -> HttpResponse:
    """Posts time_zone, shortcuts (on or absent), theme and email with the hidden values."""
    person = access.viewer(request).person

    def act(hidden: Hidden) -> dict[str, Any]:
        locked = Person.objects.select_for_update(no_key=True).get(pk=person.pk)
        hidden.require_same(
            version=0,
            shown_digest=_digest(locked),
            moved="Your profile was changed in another window.",
        )
        preferences.store(
            locked,
            time_zone=request.POST.get("time_zone", ""),
            shortcuts=request.POST.get("shortcuts") == "on",
            theme=request.POST.get("theme", ""),
            email=request.POST.get("email", person.email).strip()
            if settings.WRITES_MAIL
            else person.email,
        )
        return {}

    pressed = intent.press(request, form="profile", object_ref=person.username, act=act)
    if pressed.row is None or pressed.repeated:
        return _page(request, pressed)
    response = HttpResponseRedirect(f"{reverse('profile')}?done={pressed.row.pk}", status=303)
    response.delete_cookie(preferences.THEME_COOKIE)
    return response


def _digest(person: Person) -> str:
    chosen = preferences.of(person)
    return intent.digest_of(person.time_zone, chosen.shortcuts, chosen.theme, person.email)


def _page(request: HttpRequest, pressed: Pressed | None) -> HttpResponse:
    who = access.viewer(request)
    chosen = preferences.of(who.person)
    context = {
        "clock": who.clock,
        "person": who.person,
        "zones": preferences.time_zones(),
        "themes": Preference.Theme.choices,
        "zone": request.POST.get("time_zone", who.person.time_zone),
        "theme": request.POST.get("theme", chosen.theme),
        "writes_mail": settings.WRITES_MAIL,
        "email": request.POST.get("email", who.person.email),
        "mail_domains": preferences.mail_domains(),
        "shortcuts": chosen.shortcuts,
        "form": intent.drawn(version=0, shown_digest=_digest(who.person)),
        "agents": list(who.person.agents.order_by("name")),
        "pressed": pressed,
    }
    status = pressed.status if pressed else 200
    return render(request, "review/profile.html", context, status=status)
