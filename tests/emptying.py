"""Every row that a test committed goes; a superuser may set the guards aside for it.

Rows are deleted where Django would truncate: that makes new files for each of some hundred tables
and indexes, most of them empty, and takes thirty times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# What the migrations wrote and no test changes: kept, so that nothing has to write it anew.
_KEPT: Final = frozenset({"django_migrations", "django_content_type", "auth_permission"})


def statements(tables: Iterable[str]) -> list[str]:
    """What empties these tables, but for those that are kept; in this order."""
    return [
        "SET session_replication_role = replica;",
        *(f'DELETE FROM "{name}";' for name in tables if name not in _KEPT),
        "SET session_replication_role = DEFAULT;",
    ]
