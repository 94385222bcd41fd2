"""Load and authorise together: 404 for what one may not see, 403 for a forbidden act.

A refused act on something visible is stored before the answer is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import Http404, HttpRequest
from django.utils import timezone

from refunds.consent import roles_of
from refunds.models import Operation, Person
from refunds.queries import pages
from review import step_up
from review.models import RefusedAct
from review.presenters.words import Clock
from review.roles import SEE, Act, may, words_of


class Forbidden(Exception):
    """An act this person may not do, or with `opening` a page they may not open; already stored."""

    def __init__(self, act: Act, *, opening: bool) -> None:
        needed = words_of(act.roles)
        super().__init__(
            f"You cannot open this page. It is for the role {needed}."
            if opening
            else f"You can read this but not {act.words}. It needs the role {needed}."
        )
        self.act = act


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page, with which roles, at which instant and in which zone."""

    person: Person
    clock: Clock

    @cached_property
    def roles(self) -> frozenset[str]:
        return roles_of(self.person)

    @cached_property
    def halts(self) -> list[pages.Halt]:
        """What stops sending, read once for the frame of the page and what stands in it."""
        return pages.halts()

    def may(self, act: Act) -> bool:
        return may(self.roles, act)


def viewer(request: HttpRequest) -> Viewer:
    """The signed-in person of a request, made once per request."""
    known = getattr(request, "aftersend_viewer", None)
    if isinstance(known, Viewer):
        return known
    made = _viewer(cast(Person, request.user))
    request.aftersend_viewer = made  # type: ignore[attr-defined]
    return made


def _viewer(person: Person) -> Viewer:
    try:
        zone = ZoneInfo(person.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    return Viewer(person, Clock(timezone.now(), zone))


def require(request: HttpRequest, act: Act, object_ref: str = "") -> Viewer:
    """The viewer, if they may do `act`; raises Forbidden, stored, otherwise.

    Raises StepUpNeeded for a post of an act that needs a fresh proof of who they are.
    """
    who = viewer(request)
    if not who.may(act):
        refused(who.person, act.name, object_ref or request.path, "role_missing")
        raise Forbidden(act, opening=request.method in ("GET", "HEAD"))
    if act.step_up and request.method == "POST":
        step_up.require(request, act.words)
    return who


def operation(request: HttpRequest, operation_id: UUID, act: Act) -> Operation:
    """An operation for a page or an act; raises Http404 unless it exists and may be seen.

    Raises Forbidden when it may be seen and `act` may not be done.
    """
    who = viewer(request)
    found = pages.operation(operation_id) if who.may(SEE) else None
    if found is None:
        raise Http404
    require(request, act, str(operation_id))
    return found


def refused(person: Person, act: str, object_ref: str, code: str) -> None:
    """Store a refused act; call outside the transaction of the act."""
    RefusedAct.objects.create(
        person=person, act=act[:32], object_ref=object_ref[:160], code=code[:32]
    )
