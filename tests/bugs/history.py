"""Letting time pass without waiting: everything that is stored is moved back by so many seconds."""

from __future__ import annotations

from django.apps import apps
from django.db import connection, models, transaction

_OURS = ("refunds", "reconciliation")


AN_AGE_SECONDS = 100 * 365 * 86_400


def let_pass(seconds: float) -> None:
    """Make every stored instant `seconds` older, as if that time had gone by since.

    The guards refuse such an update, as they should; the tests' role may set them aside. The
    sandbox has a clock of its own (`SandboxProcess.advance`).
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, columns in _instants().items():
            # By way of an age that no row has: a row never moves to where another still stands.
            for by in (seconds + AN_AGE_SECONDS, -AN_AGE_SECONDS):
                sets = ", ".join(
                    f'"{name}" = "{name}" - %(by)s * interval \'1 second\'' for name in columns
                )
                cursor.execute(f'UPDATE "{table}" SET {sets}', {"by": by})


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
