"""What a worker does with the database's connection between two tasks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import psycopg
import pytest
from celery.signals import task_postrun, task_prerun
from django.conf import settings
from django.db import connection

from config.celery import app
from refunds import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        number: int = cursor.fetchone()[0]
        return number


def _between_two_tasks() -> None:
    """What Celery's own handlers and ours do, as in a worker."""
    fixup: Any = import_module("celery.fixups.django").DjangoWorkerFixup(app)
    fixup.on_task_postrun(sender=tasks.send)
    task_postrun.send(sender=tasks.send)
    fixup.on_task_prerun(sender=tasks.send)
    task_prerun.send(sender=tasks.send)


def test_a_worker_keeps_its_connection_from_task_to_task() -> None:
    before = _backend()
    _between_two_tasks()
    assert _backend() == before


def test_a_connection_that_the_server_ended_is_another_one_in_the_next_task() -> None:
    before = _backend()
    name = connection.settings_dict["NAME"]
    address = settings.DATABASE_URL.replace("/aftersend?", f"/{name}?")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [before])
    _between_two_tasks()
    assert _backend() != before
