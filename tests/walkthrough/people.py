"""Fills the empty database of an installation: schema, people, agents, and their keys.

Run inside the installation's environment, as `python -m tests.walkthrough.people`. Names, password
and keys are kept where the demo keeps them: `demo.json` in the run folder.
"""

from __future__ import annotations

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.hashers import make_password  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.core.management import call_command  # noqa: E402

from config.demo_secrets import kept_secrets, remember  # noqa: E402
from refunds.credentials import mint  # noqa: E402
from refunds.models import Agent, Person  # noqa: E402
from refunds.providers import registry  # noqa: E402
from tests.cast import OWNERS, ROLES  # noqa: E402

FEED = "Shop"  # feeds order facts; a key that does may not also propose


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    run_dir = settings.ENV.run_dir
    kept = kept_secrets(run_dir)
    # One slow hash for all of them: they share the password of this run folder.
    encoded = make_password(kept["password"])
    people = {name: Person.objects.create(username=name, password=encoded) for name in ROLES}
    for name, roles in ROLES.items():
        people[name].groups.set([Group.objects.get_or_create(name=role)[0] for role in roles])
    keys = {}
    for name, owner in {**OWNERS, FEED: "ada"}.items():
        agent = Agent.objects.create(
            name=name, owner=people[owner], accounts=sorted(registry.accounts())
        )
        scopes = ["order:write"] if name == FEED else ["refund:propose", "refund:read"]
        keys[name] = mint(agent, scopes=scopes)[1]
    remember(run_dir, kept | {"keys": keys})  # type: ignore[arg-type]  # the file holds JSON


if __name__ == "__main__":
    main()
