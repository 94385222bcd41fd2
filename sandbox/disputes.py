"""Disputes of payments: opened by the customer's bank, then won or lost."""

import sqlite3
from dataclasses import dataclass

from sandbox.book import Book, Payment


@dataclass(frozen=True, kw_only=True)
class Dispute:
    """`status`: opened, won or lost."""

    id: str
    account: str
    payment_ref: str
    charge: str
    amount_minor: int
    currency: str
    status: str
    created_at: int


class Disputes:
    """The disputes of one book."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def turn(self, payment: Payment, status: str, amount_minor: int | None = None) -> Dispute:
        """The payment's dispute has this status from now on; a new one where none is open.

        `amount_minor` of a new one; without it, all that was captured.
        """
        with self._book.transaction():
            known = self.listed(payment.account, payment_ref=payment.ref, newest_first=True)
            if known and (status != "opened" or known[0].status == "opened"):
                dispute = known[0]
                self._book.db.execute(
                    "UPDATE disputes SET status = ? WHERE id = ?", (status, dispute.id)
                )
                return self._of(dispute.id)
            number = self._book.mint()
            dispute_id = f"dp_{number:04d}"
            self._book.db.execute(
                "INSERT INTO disputes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, dispute_id, payment.account, payment.ref, payment.charge),
                    *(amount_minor or payment.captured_minor, payment.currency),
                    *(status, self._book.now()),
                ),
            )
            return self._of(dispute_id)

    def number(self, account: str, dispute_id: str) -> int | None:
        """Where a list of the account continues behind this dispute, or None."""
        row = self._book.db.execute(
            "SELECT seq FROM disputes WHERE account = ? AND id = ?", (account, dispute_id)
        ).fetchone()
        return row["seq"] if row else None

    def _of(self, dispute_id: str) -> Dispute:
        row = self._book.db.execute("SELECT * FROM disputes WHERE id = ?", (dispute_id,)).fetchone()
        return _dispute_of(row)

    def listed(
        self,
        account: str,
        *,
        payment_ref: str | None = None,
        created_from: int | None = None,
        created_until: int | None = None,
        after_seq: int | None = None,
        newest_first: bool = False,
        limit: int = -1,
    ) -> list[Dispute]:
        """Disputes in the order in which they were opened."""
        rows = self._book.db.execute(
            f"""SELECT * FROM disputes WHERE account = :account
                AND (:payment_ref IS NULL OR payment_ref = :payment_ref)
                AND (:created_from IS NULL OR created_at >= :created_from)
                AND (:created_until IS NULL OR created_at < :created_until)
                AND (:after_seq IS NULL OR seq {"<" if newest_first else ">"} :after_seq)
                ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT :limit""",
            {
                "account": account,
                "payment_ref": payment_ref,
                "created_from": created_from,
                "created_until": created_until,
                "after_seq": after_seq,
                "limit": limit,
            },
        )
        return [_dispute_of(row) for row in rows]


def _dispute_of(row: sqlite3.Row) -> Dispute:
    return Dispute(**{name: row[name] for name in row.keys() if name != "seq"})  # noqa: SIM118
