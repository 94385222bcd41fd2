"""A backup of the test's own database, and its restore while programs go on sending."""

from __future__ import annotations

import psycopg
from django.conf import settings
from django.db import connection

from tests.backup import Backup


def _backup() -> Backup:
    """Of the database under test; our own connection to it is left first."""
    assert settings.TESTING
    named = connection.get_connection_params()
    connection.close()
    wanted = {name: named[name] for name in ("user", "host", "port") if named.get(name)}
    server = psycopg.conninfo.make_conninfo(dbname="postgres", **wanted)
    return Backup(server, str(named["dbname"]))


def back_up() -> None:
    """Copy the database as it is now."""
    _backup().take()


def restore() -> None:
    """Put the copy in the database's place; what was written since is lost."""
    _backup().restore()


def forget() -> None:
    """Remove what is left of either."""
    _backup().forget()
