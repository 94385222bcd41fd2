"""Orders from a CSV file: one row per payment, the rows of an order together.

The file is read twice and never held: once to see that it is readable and which orders are torn
apart, once to take it order by order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.management import csv_rows
from refunds.management.csv_rows import Row, Unreadable
from refunds.providers import registry
from refunds.snapshot import PAYMENT_STATES, OrderSnapshot, PaymentSnapshot
from refunds.text import parse_instant

__all__ = ["OrderRows", "Row", "Unreadable", "orders", "snapshot", "survey"]

COLUMNS = (
    "order_ref",
    "feed_seq",
    "currency",
    "customer_ref",
    "payment_ref",
    "provider_account",
    "payment_state",
    "captured_at",
)
AMOUNT_COLUMNS = ("captured_minor", "captured")
_FILE = csv_rows.Columns(COLUMNS, AMOUNT_COLUMNS)
PAYMENTS_MAX = 50  # of one order, as over the API
_MINOR = re.compile(r"[0-9]{1,12}", re.ASCII)
_SEQUENCE = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first reading found. `torn`: order -> the line at which it stands again."""

    rows: int
    torn: dict[str, int]


@dataclass(slots=True)
class OrderRows:
    """The rows of one order that stand together; `count` also has those beyond the largest order."""

    ref: str
    rows: list[Row]
    count: int
    errors: list[str] = field(default_factory=list)

    def refuse(self, row: Row, column: str, why: str) -> None:
        self.errors.append(f"line {row.line}: {column}: {why}")


def survey(path: Path) -> Survey:
    """Read the whole file once. Raises Unreadable."""
    seen: set[str] = set()
    torn: dict[str, int] = {}
    rows, last = 0, None
    for row in _rows(path):
        rows += 1
        ref = _order_ref(row)
        if ref != last and ref in seen:
            torn.setdefault(ref, row.line)
        last = ref
        seen.add(last)
    return Survey(rows, torn)


def orders(path: Path) -> Iterator[OrderRows]:
    """The orders of the file, one after the other. Raises Unreadable."""
    for ref, grouped in groupby(_rows(path), key=_order_ref):
        rows = iter(grouped)
        kept = list(islice(rows, PAYMENTS_MAX + 1))
        yield OrderRows(ref, kept, len(kept) + sum(1 for _ in rows))


def _rows(path: Path) -> Iterator[Row]:
    return csv_rows.rows(path, _FILE)


def _order_ref(row: Row) -> str:
    return row.cells.get("order_ref", "")


def snapshot(order: OrderRows) -> OrderSnapshot | None:
    """The order as fed, or None with every reason in `order.errors`."""
    first = order.rows[0]
    if len(order.rows) > PAYMENTS_MAX:
        order.refuse(first, "order_ref", f"more than {PAYMENTS_MAX} payments; split the feed")
        return None
    width = len(COLUMNS) + 1
    for row in order.rows:
        if row.width != width:
            order.refuse(row, "row", f"{row.width} cells; the header has {width}")
    if order.errors:
        return None
    _check_order_cells(order, first)
    payments = [_payment(order, row) for row in order.rows]
    if order.errors:
        return None
    return OrderSnapshot(
        ref=order.ref,
        currency=first.cells["currency"],
        feed_seq=int(first.cells["feed_seq"]) if first.cells["feed_seq"] else None,
        customer_ref=first.cells["customer_ref"] or None,
        payments=tuple(payment for payment in payments if payment),
    )


def _check_order_cells(order: OrderRows, first: Row) -> None:
    sequence = first.cells["feed_seq"]
    if sequence and not _SEQUENCE.fullmatch(sequence):
        order.refuse(first, "feed_seq", f'"{sequence[:40]}" is not a whole number; write 1, 2, 3 …')
    for row in order.rows[1:]:
        for column in ("feed_seq", "currency", "customer_ref"):
            if row.cells[column] != first.cells[column]:
                order.refuse(row, column, f"differs from line {first.line} of the same order")
    refs = [row.cells["payment_ref"] for row in order.rows]
    for row, again in zip(order.rows, _repeated(refs), strict=True):
        if again:
            order.refuse(row, "payment_ref", f'"{row.cells["payment_ref"][:40]}" stands twice')


def _repeated(values: Iterable[str]) -> Iterator[bool]:
    seen: set[str] = set()
    for value in values:
        yield value in seen
        seen.add(value)


def _payment(order: OrderRows, row: Row) -> PaymentSnapshot | None:
    cells, before = row.cells, len(order.errors)
    if cells["provider_account"] not in registry.accounts():
        names = ", ".join(sorted(registry.accounts()))
        order.refuse(
            row, "provider_account", f'"{cells["provider_account"][:40]}" is not one of: {names}'
        )
    if cells["payment_state"] not in PAYMENT_STATES:
        order.refuse(
            row,
            "payment_state",
            f'"{cells["payment_state"][:40]}" is not one of: {", ".join(PAYMENT_STATES)}',
        )
    captured_minor = _captured_minor(order, row)
    captured_at = _captured_at(order, row)
    if len(order.errors) > before or captured_minor is None:
        return None
    return PaymentSnapshot(
        ref=cells["payment_ref"],
        provider_account=cells["provider_account"],
        state=cells["payment_state"],
        captured_minor=captured_minor,
        captured_at=captured_at,
    )


def _captured_minor(order: OrderRows, row: Row) -> int | None:
    try:
        if "captured" in row.cells:
            return _from_decimal(row.cells["captured"], row.cells["currency"])
        money.exponent(row.cells["currency"])
    except Refusal as refusal:
        column = "currency" if refusal.field == "currency" else "captured"
        order.refuse(row, column, f"{refusal.detail} {refusal.what_to_do}")
        return None
    text = row.cells["captured_minor"]
    if _MINOR.fullmatch(text):
        return int(text)
    order.refuse(
        row,
        "captured_minor",
        f'"{text[:40]}" is not a whole number of minor units; {_meant(text, row.cells["currency"])}',
    )
    return None


def _from_decimal(text: str, currency: str) -> int:
    try:
        return money.parse_amount(text, currency)
    except Refusal as refusal:
        if refusal.code == "amount_zero":
            return 0  # nothing is captured yet; only a refund of nothing makes no sense
        raise


def _meant(text: str, currency: str) -> str:
    try:
        return f"write {_from_decimal(text, currency)}, or use the column captured"
    except Refusal:
        return "write digits only, such as 1290"


def _captured_at(order: OrderRows, row: Row) -> datetime | None:
    text = row.cells["captured_at"]
    if not text:
        return None
    try:
        return parse_instant(text)
    except Refusal as refusal:
        order.refuse(row, "captured_at", f"{refusal.detail} {refusal.what_to_do}")
        return None
