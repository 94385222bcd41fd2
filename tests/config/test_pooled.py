"""The web program's shared connections live through a restart of the database."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg_pool import ConnectionPool

from config import pooled
from tests.provider_process import ROOT

pytestmark = pytest.mark.django_db
COUNT = 8


def test_a_request_after_a_restart_gets_a_connection_although_all_of_them_are_broken() -> None:
    named = connection.get_connection_params()
    wanted = {name: named[name] for name in ("dbname", "user", "host", "port") if named.get(name)}
    own = psycopg.conninfo.make_conninfo(**wanted, application_name="pooled")
    with ConnectionPool(
        own, min_size=COUNT, max_size=COUNT, timeout=5, check=pooled.check, open=True
    ) as pool:
        pool.wait()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
                " WHERE application_name = 'pooled'"
            )
            assert cursor.fetchone() == (COUNT,)
        with pool.connection() as fresh:
            assert fresh.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("size", ["1", "2"])
def test_a_program_with_very_few_connections_starts(size: str) -> None:
    """psycopg's pool wants four to begin with unless it is told otherwise."""
    own = {"DATABASE_URL": settings.DATABASE_URL, "AFTERSEND_DATABASE_POOL": size}
    asks = "import django; django.setup(); from django.db import connection as c; c.cursor()"
    ran = subprocess.run(
        [sys.executable, "-c", asks],
        cwd=ROOT,
        env=os.environ | own,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_a_worker_that_asked_something_before_it_shares_goes_on() -> None:
    """In production it asks at its start whether it may trust the database."""
    asks = """
import django; django.setup()
from django.db import connection
from config.celery import _share_connections
connection.cursor().execute("SELECT 1")
_share_connections(16)
for _ in range(3):
    connection.cursor().execute("SELECT 1")
    connection.close()
assert connection.pool.max_size == 4, connection.pool.max_size
"""
    ran = subprocess.run(
        [sys.executable, "-c", asks],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": settings.DATABASE_URL},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
