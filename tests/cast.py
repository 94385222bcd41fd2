"""The people and agents of the tests, by name, as in the demo."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group

from refunds.models import Agent, Person
from refunds.providers import registry

ROLES = {
    "rosa": ["rep"],
    "ada": ["lead"],
    "ben": ["lead"],
    "cleo": ["lead"],
    "omar": ["ops"],
    "ines": ["ops_lead"],
    "olga": ["ops_lead"],
    "fay": ["finance"],
    "mia": ["manager"],
    "adam": ["admin"],
    "ava": ["admin"],
    "dora": [],
}
OWNERS = {"Echo": "ada", "Foxtrot": "ben"}
PASSWORD = "a-long-test-password"


@dataclass
class Cast:
    """Everybody, stored: `cast.ada` is a lead, `cast.echo` her agent."""

    people: dict[str, Person] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Person:
        try:
            return self.people[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def echo(self) -> Agent:
        return self.agents["Echo"]

    @property
    def foxtrot(self) -> Agent:
        return self.agents["Foxtrot"]


def assemble() -> Cast:
    """Store everybody; each person has the roles above and the same password."""
    cast = Cast()
    # Most tests begin with this, so in few statements.
    password = make_password(PASSWORD)
    people = [Person(username=name, password=password) for name in ROLES]
    cast.people = {each.username: each for each in Person.objects.bulk_create(people)}
    wanted = sorted({role for roles in ROLES.values() for role in roles})
    Group.objects.bulk_create([Group(name=role) for role in wanted], ignore_conflicts=True)
    groups = {group.name: group for group in Group.objects.filter(name__in=wanted)}
    Person.groups.through.objects.bulk_create(
        Person.groups.through(person_id=cast.people[name].pk, group_id=groups[role].pk)
        for name, roles in ROLES.items()
        for role in roles
    )
    for name, owner in OWNERS.items():
        cast.agents[name] = Agent.objects.create(
            name=name, owner=cast.people[owner], accounts=sorted(registry.accounts())
        )
    return cast
