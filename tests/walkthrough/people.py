"""Fills the empty database of an installation: schema, the demo's people and agents, their keys.

Run inside the installation's environment, as `python -m tests.walkthrough.people`. Password and
keys are kept where the demo keeps them: `demo.json` in the run folder.
"""

from __future__ import annotations

from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from config.demo_secrets import kept_secrets, remember  # noqa: E402
from review.demo import people  # noqa: E402


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    run_dir = settings.ENV.run_dir
    kept: dict[str, Any] = dict(kept_secrets(run_dir))
    agents = people.ensure_agents(people.ensure_people(kept["password"]))
    remember(run_dir, kept | {"keys": people.ensure_keys(agents, {})})


if __name__ == "__main__":
    main()
