"""Who works in the demo: people by role, agents with their owners, and the agents' keys."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group

from refunds.credentials import mint
from refunds.models import Agent, Credential, Person
from refunds.providers import registry

PEOPLE: Final = {
    "rosa": ("rep",),
    "ada": ("lead",),
    "ben": ("lead",),
    "cleo": ("lead",),
    "omar": ("ops",),
    "ines": ("ops_lead",),
    "olga": ("ops_lead",),
    "fay": ("finance",),
    "mia": ("manager",),
    "adam": ("admin",),
    "ava": ("admin",),
    "dora": (),
}
# The automatic approvers of scenario orders: they cannot sign in.
APPROVERS: Final = {"demo-approver": ("lead",), "demo-approver-two": ("lead", "finance")}
PROPOSING: Final = ("refund:propose", "refund:read")
# agent -> (owner, scopes of its one key). The shop's feed has a key of its own: no key both
# feeds the facts and asks for money on them.
AGENTS: Final = {
    "Echo": ("ada", PROPOSING),
    "Foxtrot": ("ben", PROPOSING),
    "Shop": ("adam", ("order:write",)),
}


def ensure_people(password: str) -> dict[str, Person]:
    """Everybody by name; who is there already keeps their password and roles."""
    encoded = make_password(password)  # one slow hash: they share the password of this folder
    return {name: _ensure(name, roles, encoded) for name, roles in PEOPLE.items()}


def everybody() -> dict[str, Person]:
    """Everybody by name, in a demo that is filled already."""
    return {each.username: each for each in Person.objects.filter(username__in=PEOPLE)}


def ensure_approvers() -> list[Person]:
    """The people of the demo that only a program presses for."""
    return [_ensure(name, roles, make_password(None)) for name, roles in APPROVERS.items()]


def _ensure(name: str, roles: tuple[str, ...], encoded: str) -> Person:
    person, created = Person.objects.get_or_create(username=name, defaults={"password": encoded})
    if created:
        person.groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    return person


def ensure_agents(people: dict[str, Person]) -> dict[str, Agent]:
    """Every agent by name, on all accounts of this installation."""
    return {
        name: Agent.objects.get_or_create(
            name=name,
            defaults={"owner": people[owner], "accounts": sorted(registry.accounts())},
        )[0]
        for name, (owner, _) in AGENTS.items()
    }


def ensure_keys(agents: dict[str, Agent], kept: dict[str, str]) -> dict[str, str]:
    """The text of each agent's key: the kept one while it lives, otherwise a new one."""
    keys = {}
    for name, (_, scopes) in AGENTS.items():
        text = kept.get(name, "")
        alive = Credential.objects.filter(
            agent=agents[name], prefix=text[3:11], revoked_at=None
        ).exists()
        keys[name] = text if alive else mint(agents[name], scopes=list(scopes))[1]
    return keys


def who_is_who(password: str) -> list[str]:
    """Lines for the terminal: name, role, and whose agent proposes."""
    owns = {owner: agent for agent, (owner, scopes) in AGENTS.items() if scopes == PROPOSING}
    lines = [f"Everybody's password: {password}"]
    for name, roles in PEOPLE.items():
        role = ", ".join(role.replace("_", " ") for role in roles) or "no role: a stranger"
        agent = f", owner of agent {owns[name]}" if name in owns else ""
        lines.append(f"  {name:<6} {role}{agent}")
    return lines
