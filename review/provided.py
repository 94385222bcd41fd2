"""What an OpenID Connect provider says of a person, and which roles follow from it."""

from __future__ import annotations

import re
from typing import Any, Final

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from refunds.models import Person
from review.models import RoleChange
from review.sessions import end_sessions

NAME_LENGTH_MAX: Final = 60


def _oidc() -> Any:
    """The settings' provider; only somebody who came from it can be asked about."""
    assert settings.OIDC is not None
    return settings.OIDC


def claims_of(sociallogin: Any) -> dict[str, Any]:
    """The verified claims of the id token."""
    claims: dict[str, Any] = sociallogin.account.extra_data["id_token"]
    return claims


def roles_in(claims: dict[str, Any]) -> frozenset[str]:
    """Our roles for the provider's groups; a group without a role here gives none."""
    groups = claims.get(_oidc().groups_claim, [])
    if isinstance(groups, str):
        groups = [groups]
    if not isinstance(groups, list):
        return frozenset()
    return frozenset(
        _oidc().roles[group]
        for group in groups
        if isinstance(group, str) and group in _oidc().roles
    )


def keep_roles(person: Person, roles: frozenset[str]) -> None:
    """Give exactly these roles, and store the change with what was before; other sessions end."""
    with transaction.atomic():
        locked = Person.objects.select_for_update(no_key=True).get(pk=person.pk)
        before = frozenset(locked.groups.values_list("name", flat=True))
        if before == roles:
            return
        locked.groups.set([Group.objects.get_or_create(name=role)[0] for role in sorted(roles)])
        RoleChange.objects.create(
            person=locked,
            kind=RoleChange.Kind.PROVIDED,
            before={"roles": sorted(before), "active": locked.is_active},
            after={"roles": sorted(roles), "active": locked.is_active},
            reason=f"Groups at {_oidc().name}",
        )
        end_sessions(locked)


def comes_from_provider(person: Person) -> bool:
    """Whether the roles of this person are set at each sign-in, and nowhere else."""
    return settings.OIDC is not None and SocialAccount.objects.filter(user=person).exists()


def wanted_name(claims: dict[str, Any]) -> str:
    """A name to show: what the provider calls them, in letters that our pages and logs carry."""
    said = str(claims.get("preferred_username") or claims.get("email") or claims.get("sub", ""))
    return re.sub(r"[^A-Za-z0-9@.+_-]", "-", said)[:NAME_LENGTH_MAX] or "somebody"


def free_name(wanted: str) -> str:
    """`wanted`, or with a number: a stranger never becomes somebody who is here already."""
    name, number = wanted, 1
    while Person.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name
