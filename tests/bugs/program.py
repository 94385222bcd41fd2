"""A second program on the same database: one JSON order per line in, one JSON answer per line out.

`python -m tests.bugs.program`, with DATABASE_URL naming the database of the test. What it can do
stands in tests/bugs/verbs.py, and happens in a process and on a connection of its own.
"""

from __future__ import annotations

import json
import sys

import django


def main() -> None:
    django.setup()
    from django.db import connection

    from tests.bugs.verbs import answer

    print("ready", flush=True)
    for line in sys.stdin:
        # As every task does: what cut this connection since the last order is not its trouble.
        connection.close()
        with connection.cursor() as cursor:
            # A slow machine must not end a race that a test has set up.
            cursor.execute("SET lock_timeout = '20s'; SET statement_timeout = '20s'")
        print(json.dumps(answer(line)), flush=True)


if __name__ == "__main__":
    main()
