"""Sends refunds whose answers get lost: `python -m tests.due_at_once.fill FILE`

Run inside the installation's environment. FILE is a JSON list of {"order", "amount_minor"} whose
orders are known. Every refund is proposed by an agent, approved by a lead and sent, by the
product's own verbs and without a worker between them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django

django.setup()

from refunds import dispatch  # noqa: E402
from refunds.models import Agent, Person  # noqa: E402
from tests import build  # noqa: E402


def main() -> None:
    echo, ben = Agent.objects.get(name="Echo"), Person.objects.get(username="ben")
    for each in json.loads(Path(sys.argv[1]).read_text()):
        operation = build.authorized(
            echo,
            ben,
            order_ref=each["order"],
            amount_minor=each["amount_minor"],
            tool_call_id=f"call_{each['order']}",
        )
        said = dispatch.send(str(operation.pk))
        assert said == "unanswered", f"{each['order']}: {said}"


if __name__ == "__main__":
    main()
