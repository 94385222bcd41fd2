"""Django's own command, without the programs' limit on how long a statement may take.

To read a large table once, or to build an index beside the work that goes on, takes longer than any
request may. What holds others up stays bounded: a lock that does not come within 2 s is given up
(lock_timeout), the migration ends with an error and may be run again.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import connections


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with connections[options["database"]].cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
        try:
            super().handle(*args, **options)
        finally:
            with connections[options["database"]].cursor() as cursor:
                cursor.execute("RESET statement_timeout")
