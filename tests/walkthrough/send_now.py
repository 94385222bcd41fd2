"""A sender told to send one operation: `python -m tests.walkthrough.send_now OPERATION`

It gets everything ready, says so, waits for a line on its input, and sends; what came of it is
its last line. Two of them and a worker make three who want to be first.
"""

from __future__ import annotations

import sys

import django

django.setup()

from django.db import connection  # noqa: E402

from refunds import dispatch  # noqa: E402
from refunds.providers import registry  # noqa: E402


def main(operation_id: str) -> None:
    registry.accounts()
    connection.ensure_connection()
    print("ready", flush=True)
    sys.stdin.readline()
    print(dispatch.send(operation_id), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
