"""A sender that is told what to send: `python -m tests.walkthrough.send_now`

It gets everything ready and says so; then each line of its input is an operation's id, sent at
once, and each line of its output what came of that. Two of them and a worker make three who want
to be first.
"""

from __future__ import annotations

import sys

import django

django.setup()

from django.db import connection  # noqa: E402

from refunds import dispatch  # noqa: E402
from refunds.providers import registry  # noqa: E402


def main() -> None:
    registry.accounts()
    connection.ensure_connection()
    print("ready", flush=True)
    for line in sys.stdin:
        print(dispatch.send(line.strip()), flush=True)


if __name__ == "__main__":
    main()
