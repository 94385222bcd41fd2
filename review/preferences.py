"""How a person wants the console: what a new person gets, and what the profile page stores."""

from __future__ import annotations

import zoneinfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest

from refunds.domain.errors import Refusal
from refunds.models import Person
from review.models import Preference

THEME_COOKIE = "theme"
_MAIL_LENGTH = 254


def of(person: Person | None) -> Preference:
    """The stored preference, or the unsaved default."""
    found = Preference.objects.filter(person=person).first() if person else None
    return found or Preference(person=person)


def theme(request: HttpRequest, preference: Preference) -> str:
    """light, dark, or empty for the device's own; this browser's last choice goes first."""
    chosen = request.COOKIES.get(THEME_COOKIE, preference.theme)
    return chosen if chosen in (Preference.Theme.LIGHT, Preference.Theme.DARK) else ""


def time_zones() -> list[str]:
    """Every zone one can choose: names of places, and UTC."""
    return sorted(name for name in zoneinfo.available_timezones() if "/" in name or name == "UTC")


def store(person: Person, *, time_zone: str, shortcuts: bool, theme: str, email: str) -> None:
    """Raises Refusal for a zone or a theme that the page does not offer, and for an address that
    is none or of another house; an empty `email` ends the messages."""
    if time_zone not in time_zones():
        raise _not_offered("time_zone", "time zone")
    if theme not in Preference.Theme.values:
        raise _not_offered("theme", "theme")
    if email:
        _require_own_mail(email)
    Person.objects.filter(pk=person.pk).update(time_zone=time_zone, email=email)
    Preference.objects.update_or_create(
        person=person, defaults={"shortcuts": shortcuts, "theme": theme}
    )


def mail_domains() -> list[str]:
    """Where messages to people may go: the house of their sender, and the allowed hosts."""
    sender = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">").lower()
    return sorted({sender, *settings.CALLBACK_HOSTS})


def _require_own_mail(email: str) -> None:
    try:
        validate_email(email)
    except ValidationError:
        known = False
    else:
        known = email.rpartition("@")[2].lower() in mail_domains() and len(email) <= _MAIL_LENGTH
    if not known:
        raise Refusal(
            "field_format",
            "Not recorded. This is not an e-mail address that messages may go to.",
            what_to_do=f"Use an address at {' or '.join(mail_domains())}, or leave it empty.",
            field="email",
        )


def _not_offered(field: str, words: str) -> Refusal:
    return Refusal(
        "field_format",
        f"Not recorded. This {words} is not one of those offered.",
        what_to_do=f"Choose a {words} from the list.",
        field=field,
    )
