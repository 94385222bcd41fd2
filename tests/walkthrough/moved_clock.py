"""Moving every clock of an installation on, while its programs sleep."""

from __future__ import annotations

import psycopg

# Sessions end by the clock of whoever sits there, who does not move with us.
_EXCEPT = ("django_session",)
_AN_AGE_SECONDS = 100 * 365 * 86_400
_COLUMNS = """
SELECT c.table_name, array_agg(c.column_name::text ORDER BY c.column_name)
FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
  AND c.data_type = 'timestamp with time zone' AND c.is_generated = 'NEVER'
  AND c.table_name <> ALL (%s)
GROUP BY c.table_name"""


def let_it_be_longer_ago(database: str, seconds: float) -> bool:
    """Every instant the database holds moves into the past: what lay ahead comes nearer.

    The guards are set aside for it, which only a superuser can do; nothing else changes. False,
    and nothing has moved, where somebody holds a row.
    """
    try:
        with psycopg.connect(database) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("SET LOCAL lock_timeout = '200ms'")
            for table, columns in connection.execute(_COLUMNS, [list(_EXCEPT)]).fetchall():
                sets = ", ".join(
                    f'"{name}" = "{name}" - %(by)s * interval \'1 second\'' for name in columns
                )
                # By way of an age that no row has: none moves to where another still stands.
                for by in (seconds + _AN_AGE_SECONDS, -_AN_AGE_SECONDS):
                    connection.execute(f'UPDATE "{table}" SET {sets}'.encode(), {"by": by})
    except psycopg.errors.LockNotAvailable:
        return False
    return True
