"""Mints further keys of Echo and Foxtrot; prints one JSON object of agents and lists of keys.

Run inside the installation's environment, as `python -m tests.agents.keys COUNT`. Each key has a
pace of its own, and another key of an agent is that same agent.
"""

from __future__ import annotations

import json
import sys

import django

django.setup()

from refunds import credentials  # noqa: E402
from refunds.models import Agent  # noqa: E402


def main(count: int) -> None:
    scopes = ["refund:propose", "refund:read"]
    print(
        json.dumps(
            {
                name: [
                    credentials.mint(Agent.objects.get(name=name), scopes=scopes)[1]
                    for _ in range(count)
                ]
                for name in ("Echo", "Foxtrot")
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
