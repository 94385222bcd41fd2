"""People named on a command line."""

from __future__ import annotations

from django.core.management.base import CommandError

from refunds.consent import roles_of
from refunds.models import Person


def person_named(username: str, *, roles: set[str]) -> Person:
    """The active person with one of the roles; raises CommandError that says which are needed."""
    person = Person.objects.filter(username=username, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active person {username}.")
    if not roles & roles_of(person):
        raise CommandError(f"{username} needs one of the roles {', '.join(sorted(roles))}.")
    return person
