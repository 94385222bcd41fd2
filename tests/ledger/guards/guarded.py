"""A committed ledger, and statements that must leave it as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from refunds import dispatch
from refunds.models import Evidence, Operation, Order, Payment
from tests import build
from tests.cast import Cast, assemble
from tests.ledger.rows import everything
from tests.provider_process import SandboxProcess


def _run(sql: str, parameters: list[Any] | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or [])


def _commit(sql: str, parameters: list[Any] | None) -> None:
    with transaction.atomic():
        _run(sql, parameters)


@dataclass
class Guarded:
    """Operations in three states, made by the product's own verbs and committed."""

    cast: Cast
    order: Order
    payment: Payment
    waiting: Operation
    of_cleo: Operation
    authorized: Operation
    unknown: Operation

    def refuses(self, sql: str, parameters: list[Any] | None = None, *, says: str) -> None:
        """Run the statement in a transaction of its own and commit: an error, and no row differs."""
        before = everything()
        with pytest.raises(DatabaseError, match=says):
            _commit(sql, parameters)
        assert everything() == before

    def accepts(self, sql: str, parameters: list[Any] | None = None) -> None:
        """Run the statement up to its commit, see that it changed a row, and put it back."""
        before = everything()
        with transaction.atomic():
            _run(sql, parameters)
            connection.check_constraints()
            assert everything() != before
            transaction.set_rollback(True)
        assert everything() == before

    def copy_of_operation(self, **changes: str) -> str:
        """INSERT of a second operation like an existing one, with other SQL values for some columns."""
        columns = [str(field.column) for field in Operation._meta.concrete_fields]
        values = {name: name for name in columns} | {
            "id": "gen_random_uuid()",
            "business_key": "'refund:4821:copied'",
            "request_ref": "'copied'",
            **changes,
        }
        chosen = ", ".join(values[name] for name in columns)
        return (
            f"INSERT INTO operation ({', '.join(columns)})"
            f" SELECT {chosen} FROM operation WHERE id = %s"
        )


def built(provider: SandboxProcess) -> Guarded:
    """The ledger under guard, on an empty database."""
    provider.reset()
    provider.payment()
    cast = assemble()
    build.order()
    order = build.external_refund("4821", 500)
    of_cleo = build.proposed(cast.cleo, amount_minor=440)
    waiting = build.proposed(cast.echo, amount_minor=110)
    unknown = build.authorized(cast.echo, cast.ben, amount_minor=220)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(unknown.pk)) == "unanswered"
    assert Evidence.objects.filter(operation=unknown).exists()
    authorized = build.authorized(cast.echo, cast.ben, amount_minor=330)
    for operation in (waiting, unknown):
        operation.refresh_from_db()
    return Guarded(
        cast=cast,
        order=Order.objects.get(pk=order.pk),
        payment=Payment.objects.get(),
        waiting=waiting,
        of_cleo=of_cleo,
        authorized=authorized,
        unknown=unknown,
    )
