"""Migrations of an installation that is at work: what they may take, and what they leave."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import pre_migrate

from refunds.models import Event, Operation

BY_HAND = [(Operation, "operation_due"), (Event, "event_rejected")]


def _statement_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_migration_may_take_longer_than_a_request_and_a_lock_no_longer() -> None:
    usual, meanwhile = _statement_timeout(), []

    def look(**_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            meanwhile.append((_statement_timeout(), cursor.fetchone()[0]))

    pre_migrate.connect(look)
    try:
        call_command("migrate", verbosity=0)
    finally:
        pre_migrate.disconnect(look)
    assert set(meanwhile) == {("0", "2s")}
    assert _statement_timeout() == usual == "5s"


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "name"), BY_HAND)
def test_an_index_that_is_built_beside_the_work_is_the_one_of_the_model(
    model: type[Operation | Event], name: str
) -> None:
    [index] = [each for each in model._meta.indexes if each.name == name]
    told = index.clone()
    told.name = f"{name}_told"
    with connection.schema_editor() as editor:
        editor.add_index(model, told)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname IN (%s, %s)",
            [name, told.name],
        )
        found = dict(cursor.fetchall())
    assert found[name] == found[told.name].replace(told.name, name)
