"""The people and agents of the tests, by name, as in the demo."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    for name, roles in ROLES.items():
        person = Person.objects.create_user(name, password=PASSWORD)
        person.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
        cast.people[name] = person
    for name, owner in OWNERS.items():
        cast.agents[name] = Agent.objects.create(
            name=name, owner=cast.people[owner], accounts=sorted(registry.accounts())
        )
    return cast
