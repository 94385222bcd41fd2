"""What a verifier finds, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction


@dataclass(frozen=True, slots=True)
class Finding:
    """One contradiction about `subject`, at `account`, in a sentence."""

    subject: str
    account: str
    says: str


@contextmanager
def one_snapshot() -> Iterator[None]:
    """A transaction that sees one instant and cannot write."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
