"""Settlement reports as files: our neutral format, and Stripe's payout reconciliation export.

Stripe (docs.stripe.com/reports/payout-reconciliation, itemized): `gross`, `fee` and `net` are
decimals in the currency of the payout, refunds below zero; `customer_facing_amount` is what the
customer got, in their own currency; `source_id` is the refund's id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.management.csv_rows import (
    Columns,
    Row,
    Unreadable,
    Wrong,
    account_cell,
    currency_cell,
    header_of,
    instant_cell,
    minor_cell,
    rows,
    text_cell,
)

NEUTRAL: Final = Columns(
    (
        *("provider_account", "provider_refund_ref", "payment_ref", "marker", "amount_minor"),
        *("currency", "provider_status", "created_at", "settled_at", "report_ref"),
    ),
    may=("settled_minor", "settled_currency", "fee_minor"),
)
STRIPE: Final = Columns(
    (
        *("balance_transaction_id", "created_utc", "currency", "gross", "fee"),
        *("reporting_category", "source_id", "payment_intent_id", "charge_id"),
        *("automatic_payout_id", "customer_facing_amount", "customer_facing_currency"),
    ),
    others=True,
)
_STRIPE_STATUS: Final = {"refund": "succeeded", "refund_failure": "failed"}
_STRIPE_MARKER: Final = "refund_metadata[aftersend_operation]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One refund in one report. Amounts in minor units; the settled ones in the payout's
    currency, None where the report does not say."""

    provider_account: str
    provider_refund_ref: str
    payment_ref: str
    marker: str
    amount_minor: int
    currency: str
    provider_status: str
    created_at: datetime | None
    settled_at: datetime | None
    report_ref: str
    settled_minor: int | None = None
    settled_currency: str = ""
    fee_minor: int | None = None


def columns_of(path: Path) -> Columns:
    """Which of the two formats the file has. Raises Unreadable."""
    return STRIPE if "balance_transaction_id" in header_of(path) else NEUTRAL


def lines(path: Path, account: str | None) -> Iterator[tuple[Row, Line | Wrong | None]]:
    """Every row with what it says: a line, what is wrong with it, or None for no refund.

    `account` is needed for Stripe's export, which does not name it. Raises Unreadable.
    """
    columns = columns_of(path)
    if columns is STRIPE and account is None:
        raise Unreadable("Stripe's export does not name the account: say --account")
    failed = _failed(path) if columns is STRIPE else frozenset[tuple[str, str]]()
    for row in rows(path, columns):
        try:
            row.require_whole()
            if columns is not STRIPE:
                yield row, _neutral(row)
            elif row.cells["reporting_category"] == "refund" and _in_payout(row) in failed:
                yield row, None  # one payout has its failure too, which is what it came to
            else:
                yield row, _stripe(row, account or "")
        except Wrong as wrong:
            yield row, wrong


def _failed(path: Path) -> frozenset[tuple[str, str]]:
    """The refunds of an export that came back in the payout that they left in."""
    return frozenset(
        _in_payout(row)
        for row in rows(path, STRIPE)
        if row.width == row.wanted and row.cells["reporting_category"] == "refund_failure"
    )


def _in_payout(row: Row) -> tuple[str, str]:
    return row.cells["automatic_payout_id"], row.cells["source_id"]


def _neutral(row: Row) -> Line:
    optional = {name: row.cells.get(name, "") for name in NEUTRAL.may}
    return Line(
        provider_account=account_cell(row),
        provider_refund_ref=text_cell(row, "provider_refund_ref"),
        payment_ref=text_cell(row, "payment_ref"),
        marker=text_cell(row, "marker", needed=False, length_max=64),
        amount_minor=minor_cell(row, "amount_minor"),
        currency=currency_cell(row),
        provider_status=text_cell(row, "provider_status", length_max=32),
        created_at=instant_cell(row, "created_at"),
        settled_at=instant_cell(row, "settled_at", needed=False),
        report_ref=text_cell(row, "report_ref"),
        settled_minor=minor_cell(row, "settled_minor") if optional["settled_minor"] else None,
        settled_currency=optional["settled_currency"][:3],
        fee_minor=minor_cell(row, "fee_minor", positive=False) if optional["fee_minor"] else None,
    )


def _stripe(row: Row, account: str) -> Line | None:
    status = _STRIPE_STATUS.get(row.cells["reporting_category"])
    if status is None:
        return None
    settled_currency = row.cells["currency"].upper()
    settled_minor = _decimal(row, "gross", settled_currency)
    currency = row.cells["customer_facing_currency"].upper() or settled_currency
    shown = "customer_facing_amount" if row.cells["customer_facing_amount"] else "gross"
    try:
        created_at = datetime.fromisoformat(row.cells["created_utc"]).replace(tzinfo=UTC)
    except ValueError:
        raise Wrong("created_utc", f'"{row.cells["created_utc"][:40]}" is no time') from None
    return Line(
        provider_account=account,
        provider_refund_ref=text_cell(row, "source_id"),
        payment_ref=row.cells["payment_intent_id"] or text_cell(row, "charge_id"),
        marker=row.cells.get(_STRIPE_MARKER, "")[:64],
        amount_minor=_decimal(row, shown, currency),
        currency=currency,
        provider_status=status,
        created_at=created_at,
        settled_at=None,
        report_ref=row.cells["automatic_payout_id"] or text_cell(row, "balance_transaction_id"),
        settled_minor=settled_minor,
        settled_currency=settled_currency,
        fee_minor=_decimal(row, "fee", settled_currency, zero=True),
    )


def _decimal(row: Row, column: str, currency: str, *, zero: bool = False) -> int:
    """The size of a signed decimal, in minor units of its currency."""
    text = row.cells[column].removeprefix("-")
    try:
        return money.parse_amount(text, currency)
    except Refusal as refusal:
        if zero and refusal.code == "amount_zero":
            return 0
        raise Wrong(column, f"{refusal.detail} {refusal.what_to_do}") from None
