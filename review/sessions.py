"""Ending the sessions of a person: after a change of their roles, password or second factors."""

from __future__ import annotations

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone

from refunds.models import Person


def end_sessions(person: Person, *, but: str | None = None) -> int:
    """End all sessions of `person` except the one with the key `but`; how many ended.

    Sessions name no person in the database, so the living ones are read one by one: as many as
    people have browsers. A request that runs at this moment cannot store its session again.
    """
    theirs = [
        session.pk
        for session in Session.objects.filter(expire_date__gt=timezone.now())
        if session.pk != but and session.get_decoded().get(SESSION_KEY) == str(person.pk)
    ]
    Session.objects.filter(pk__in=theirs).delete()
    return len(theirs)
