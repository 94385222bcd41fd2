"""Take orders from a CSV file, each order whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError
from tqdm import tqdm

from refunds import feed
from refunds.domain.errors import Refusal
from refunds.management.order_csv import OrderRows, Unreadable, orders, snapshot, survey

ACTOR = "import_orders"
_COLUMN_OF_FIELD = {"state": "payment_state", "payments": "payment_ref"}


class Command(BaseCommand):
    help = (
        "Take orders from a CSV file: one row per payment, the rows of an order together, each"
        " order whole or not at all. Exit 0: all taken; 1: some refused; 2: not readable."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            found = survey(path)
            taken, changed, refused = self._take(path, found.rows, dict(found.torn))
        except Unreadable as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(f"{taken} orders taken, {changed} of them changed; {refused} refused")
        if refused:
            sys.exit(1)

    def _take(self, path: Path, rows: int, torn: dict[str, int]) -> tuple[int, int, int]:
        taken = changed = refused = 0
        told: set[str] = set()
        with tqdm(total=rows, unit=" rows", file=sys.stderr) as bar:
            for order in orders(path):
                if order.ref in torn:
                    if order.ref not in told:
                        told.add(order.ref)
                        refused += 1
                        _say([_torn(order, torn[order.ref])])
                elif (fed := _upsert(order)) is None:
                    refused += 1
                    _say(order.errors)
                else:
                    taken += 1
                    changed += fed.changed
                bar.update(order.count)
        return taken, changed, refused


def _upsert(order: OrderRows) -> feed.Fed | None:
    """One order in one transaction; None with the reasons in `order.errors`."""
    facts = snapshot(order)
    if facts is None:
        return None
    first = order.rows[0]
    try:
        return feed.upsert(facts, by=ACTOR)
    except Refusal as refusal:
        field = refusal.field or "order_ref"
        order.refuse(
            first, _COLUMN_OF_FIELD.get(field, field), f"{refusal.detail} {refusal.what_to_do}"
        )
        return None
    except (OperationalError, InterfaceError) as error:
        raise CommandError(
            f"line {first.line}: the database went away ({type(error).__name__}). The orders"
            " before this line are stored; run the same file again, stored ones do not change."
        ) from error


def _torn(order: OrderRows, again: int) -> str:
    return (
        f"line {again}: order_ref: the rows of order {order.ref} do not stand together, it began"
        f" at line {order.rows[0].line}; sort the file by order_ref. None of it was taken"
    )


def _say(lines: list[str]) -> None:
    for line in lines:
        tqdm.write(line, file=sys.stderr)
