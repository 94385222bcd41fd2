"""The one clock by which stored instants are judged: the database's own.

Leases, send deadlines and approvals are stamped by the database. A worker whose own clock is
minutes off would believe an absence before the last request could have landed.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """This instant by the database's clock; it moves on inside a transaction, too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
    return at
