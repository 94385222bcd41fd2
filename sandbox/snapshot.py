"""The book as a witness reads it."""

from collections.abc import Mapping
from typing import Any

from sandbox.book import REFUND_AT, Book, Refund, refund_of
from sandbox.instants import iso


def snapshot(book: Book, account: str | None = None) -> dict[str, Any]:
    """The whole book as JSON: payments with their refunds, as they stand now."""
    now = book.now()
    counts = {
        (row["account"], row["key"]): row["count"]
        for row in book.db.execute(
            "SELECT account, key, count(*) AS count FROM refunds GROUP BY account, key"
        )
    }
    refunds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in book.db.execute(f"{REFUND_AT} WHERE created_at <= :at ORDER BY seq", {"at": now}):
        of_payment = refunds.setdefault((row["account"], row["payment_ref"]), [])
        of_payment.append(_shown(refund_of(row), counts))
    payments = [
        {
            "account": row["account"],
            "ref": row["ref"],
            "currency": row["currency"],
            "captured_minor": row["captured_minor"],
            "state": row["state"],
            "refunds": refunds.get((row["account"], row["ref"]), []),
        }
        for row in book.db.execute(
            """SELECT * FROM payments WHERE :account IS NULL OR account = :account
               ORDER BY rowid""",
            {"account": account},
        )
    ]
    return {"now": iso(now), "payments": payments}


def _shown(refund: Refund, counts: Mapping[tuple[str, str | None], int]) -> dict[str, Any]:
    return {
        "id": refund.id,
        "aftersend_operation": refund.marker,
        "key": refund.key,
        "amount_minor": refund.amount_minor,
        "status": refund.status,
        "created_at": iso(refund.created_at),
        "by": refund.by,
        "executions": 1 if refund.key is None else counts[refund.account, refund.key],
    }
