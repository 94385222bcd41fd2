"""Letting time pass without waiting: everything that is stored is moved back by so many seconds."""

from __future__ import annotations

from django.apps import apps
from django.db import connection, models, transaction

_OURS = ("refunds", "reconciliation")


def let_pass(seconds: float) -> None:
    """Make every stored instant `seconds` older, as if that time had gone by since.

    The guards refuse such an update, as they should; the tests' role may set them aside. The
    sandbox has a clock of its own (`SandboxProcess.advance`).
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, columns in _instants().items():
            sets = ", ".join(
                f'"{name}" = "{name}" - %(by)s * interval \'1 second\'' for name in columns
            )
            cursor.execute(f'UPDATE "{table}" SET {sets}', {"by": seconds})


def _instants() -> dict[str, list[str]]:
    found = {}
    for model in apps.get_models():
        columns = [
            str(field.column)
            for field in model._meta.concrete_fields
            if isinstance(field, models.DateTimeField)
        ]
        if columns and model._meta.app_label in _OURS:
            found[model._meta.db_table] = columns
    return found
