"""Mints what the bad agents hold: living keys, revoked ones, expired ones, narrow ones.

Run inside the installation's environment, as `python -m tests.bad_agent.keys`; prints one JSON
object. Many keys, because each has its pace and the pace is part of what is tried.
"""

from __future__ import annotations

import json
from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import Group  # noqa: E402
from django.utils import timezone  # noqa: E402

from refunds import credentials  # noqa: E402
from refunds.models import Agent, Credential, Person  # noqa: E402
from tests.bad_agent.wishes import ACCOUNTS  # noqa: E402

AGENTS = ("Mallory", "Oscar", "Trudy", "Eve")
KEYS_EACH = 50
WRONG_EACH = 3
PROPOSING = ["refund:propose", "refund:read"]


def main() -> None:
    # Their owner leads nothing, so that every lead may decide about what they ask for.
    owner = Person.objects.get(username="adam")
    agents = [
        Agent.objects.create(name=name, owner=owner, accounts=list(ACCOUNTS)) for name in AGENTS
    ]
    stranger = Agent.objects.create(name="Narrow", owner=owner, accounts=["plain-blind"])
    for name in ("ben", "cleo"):
        Person.objects.get(username=name).groups.add(Group.objects.get(name="lead"))
    print(
        json.dumps(
            {
                "alive": [_mint(agents[n % len(agents)]) for n in range(KEYS_EACH * len(agents))],
                "hasty": [_mint(agents[0])],
                "reading": [_mint(each, ["refund:read"]) for each in agents],
                "foreign": [_mint(stranger) for _ in range(KEYS_EACH)],
                "revoked": [_revoked(each) for each in agents * WRONG_EACH],
                "expired": [_expired(each) for each in agents * WRONG_EACH],
            }
        )
    )


def _mint(agent: Agent, scopes: list[str] | None = None) -> str:
    return credentials.mint(agent, scopes=scopes or PROPOSING)[1]


def _revoked(agent: Agent) -> str:
    credential, text = credentials.mint(agent, scopes=PROPOSING)
    credentials.revoke(credential)
    return text


def _expired(agent: Agent) -> str:
    credential, text = credentials.mint(agent, scopes=PROPOSING)
    Credential.objects.filter(pk=credential.pk).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    return text


if __name__ == "__main__":
    main()
