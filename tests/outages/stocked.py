"""Fills the past of an installation, with whichever release's code it is run: `python -c`, its text,
and the number of refunds. It prints the newest id.
"""

import sys

import django

django.setup()

from django.db import connection  # noqa: E402

from refunds.models import Agent, Person  # noqa: E402
from review.demo import people  # noqa: E402
from tests.bench import dialect, stock  # noqa: E402


def main() -> None:
    owner = Person.objects.get(username="ada")
    for number in range(8):
        Agent.objects.create(name=f"bench-{number}", owner=owner, accounts=[dialect.NAME])
        people._ensure(f"bench-lead-{number}", ("lead",), "!")
    with connection.cursor() as cursor:
        # It is the server that works; the programs' own limit is for them.
        cursor.execute("SET statement_timeout = 0")
        stock.finished(cursor, int(sys.argv[1]))
        cursor.execute("SELECT max(id::text) FROM operation")
        print(cursor.fetchone()[0])


main()
