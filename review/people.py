"""Adding people and changing what they may do: one admin proposes, another one decides."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from refunds.consent import roles_of
from refunds.domain.errors import Refusal
from refunds.domain.roles import ADMIN, ROLES
from refunds.models import Person
from refunds.text import check_text
from review import provided
from review.models import RoleChange, RoleDecision
from review.sessions import end_sessions

REASON_LENGTH_MIN: Final = 10
REASON_LENGTH_MAX: Final = 300
ADMINS_MIN: Final = 2


def new_password() -> str:
    """A first password: 96 random bits, to be shown once."""
    return secrets.token_urlsafe(12)


def store(username: str, password: str) -> Person:
    """A new person without any role; raises Refusal for a name that cannot be or is taken."""
    person = Person(username=username)
    person.set_password(password)
    try:
        person.full_clean(exclude=["password"])
        if Person.objects.filter(username__iexact=username).exists():
            raise ValidationError("Somebody has it already, in other letters.")
        with transaction.atomic():
            person.save()
    except (ValidationError, IntegrityError) as error:
        said = error.messages[0] if isinstance(error, ValidationError) else "It is taken."
        raise Refusal(
            "name_refused",
            f"Nobody was added. The name {username or '(empty)'} cannot be used: {said}",
            what_to_do="Choose another name: letters, digits and @ . + - _ only.",
            field="username",
        ) from error
    return person


def add(username: str, *, by: Person) -> tuple[Person, str]:
    """Add a person without a role; returns them and the password to show once."""
    password = new_password()
    person = store(username, password)
    RoleChange.objects.create(
        person=person,
        kind=RoleChange.Kind.ADDED,
        before={"roles": [], "active": False},
        after=state_of(person),
        reason="Added",
        proposed_by=by,
    )
    return person, password


def state_of(person: Person) -> dict[str, Any]:
    """What a change compares: {"roles": sorted names, "active": bool}."""
    names = person.groups.values_list("name", flat=True)
    return {"roles": sorted(names), "active": person.is_active}


def propose(
    person_id: int, *, roles: Iterable[str], active: bool, reason: str, by: Person
) -> RoleChange:
    """Store a proposal; it changes nothing until another admin confirms. Raises Refusal."""
    reason = reason.strip()
    if len(reason) < REASON_LENGTH_MIN:
        raise Refusal(
            "reason_too_short",
            f"Not proposed. The reason needs {REASON_LENGTH_MIN} characters or more.",
            what_to_do="Say why, for the admin who confirms it.",
            field="reason",
        )
    check_text(reason, field="reason", length_max=REASON_LENGTH_MAX)
    person = Person.objects.select_for_update(no_key=True).get(pk=person_id)
    before, after = state_of(person), {"roles": sorted(set(roles) & set(ROLES)), "active": active}
    _require_another(by, person)
    _require_worth(person, before, after)
    return RoleChange.objects.create(
        person=person,
        kind=RoleChange.Kind.CHANGE,
        before=before,
        after=after,
        reason=reason,
        proposed_by=by,
    )


def decide(change_id: int, *, confirmed: bool, by: Person) -> RoleDecision:
    """Confirm or decline a proposal, and on yes do it and end the person's sessions.

    The proposer may take it back. Whom it is about has no say, or they could keep their roles by
    declining. Raises Refusal for them, for a decided change, or for a person who moved meanwhile.
    """
    change = RoleChange.objects.select_for_update().get(pk=change_id)
    if change.kind != RoleChange.Kind.CHANGE or RoleDecision.objects.filter(pk=change_id).exists():
        raise Refusal(
            "already_decided",
            "Somebody decided this already. Your press changed nothing.",
            status=409,
            what_to_do="Look at the list of changes below.",
        )
    if by.pk == change.person_id:
        raise _own("You cannot decide this: it is about you.")
    if not confirmed:
        return RoleDecision.objects.create(change=change, by=by, confirmed=False)
    if by.pk == change.proposed_by_id:
        raise _own("You cannot confirm this: you proposed it.")
    # One order of locks for all changes of roles, so that two never leave fewer than two admins.
    # Rows that only name a person are let through: whoever stores one may be waiting for us.
    rows = Person.objects.select_for_update(no_key=True).order_by("pk")
    everybody = {each.pk: each for each in rows}
    person = everybody[change.person_id]
    if ADMIN not in roles_of(everybody[by.pk]):
        raise _own("You are no admin any more: that changed while you pressed.")
    if state_of(person) != change.before:
        raise Refusal(
            "stale_page",
            f"Not confirmed. The roles of {person} changed after this was proposed.",
            status=409,
            what_to_do="Decline it, and propose again from what holds now.",
        )
    _require_admins_left(person, change.after)
    decision = RoleDecision.objects.create(change=change, by=by, confirmed=True)
    person.groups.set([Group.objects.get_or_create(name=role)[0] for role in change.after["roles"]])
    person.is_active = change.after["active"]
    person.save(update_fields=["is_active"])
    end_sessions(person)
    return decision


def open_changes() -> list[RoleChange]:
    """Proposals that nobody decided, oldest first."""
    return list(
        RoleChange.objects.filter(kind=RoleChange.Kind.CHANGE, decision=None)
        .select_related("person", "proposed_by")
        .order_by("pk")
    )


def waiting_for(by: Person) -> int:
    """How many of them this admin may confirm: neither theirs nor about them."""
    changes = RoleChange.objects.filter(kind=RoleChange.Kind.CHANGE, decision=None)
    return changes.exclude(person=by).exclude(proposed_by=by).count()


def _require_another(by: Person, person: Person) -> None:
    if by.pk == person.pk:
        raise _own("You cannot change your own roles, nor propose it.")


def _require_worth(person: Person, before: dict[str, Any], after: dict[str, Any]) -> None:
    if before == after:
        raise Refusal(
            "nothing_changed",
            f"Not proposed. {person} has exactly these roles already.",
            what_to_do="Tick what should be different.",
            field="roles",
        )
    if provided.comes_from_provider(person) and before["roles"] != after["roles"]:
        raise Refusal(
            "roles_provided",
            f"Not proposed. The roles of {person} come from the sign-in provider at each sign-in.",
            what_to_do="Change their groups there. Here you can only switch the person off.",
            field="roles",
        )
    if RoleChange.objects.filter(
        person=person, kind=RoleChange.Kind.CHANGE, decision=None
    ).exists():
        raise Refusal(
            "already_proposed",
            f"Not proposed. A change for {person} waits for a decision already.",
            status=409,
            what_to_do="Have that one confirmed or declined first.",
        )


def _require_admins_left(person: Person, after: dict[str, Any]) -> None:
    if ADMIN in after["roles"] and after["active"]:
        return
    others = Person.objects.filter(groups__name=ADMIN, is_active=True).exclude(pk=person.pk)
    if ADMIN in roles_of(person) and others.count() < ADMINS_MIN:
        raise Refusal(
            "too_few_admins",
            f"Not confirmed. It would leave fewer than {ADMINS_MIN} admins, and then no role"
            " could ever be changed again.",
            status=409,
            what_to_do="Give another person the role first.",
        )


def _own(sentence: str) -> Refusal:
    return Refusal("own_roles", sentence, status=403, what_to_do="Leave it to another admin.")
