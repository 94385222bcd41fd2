"""The provider's own book in one SQLite file: the witness that tests trust.

Every fact survives a killed process: payments, refunds and their statuses, keys, calls,
faults, waiting requests and notices. Instants are microseconds of the control clock.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.profiles import Profile, default_profiles
from sandbox.schema import SCHEMA, TABLES

# A refund in one of these took nothing from the payment, or gave it back.
VOID_STATUSES = ("failed", "canceled")


@dataclass(frozen=True, kw_only=True)
class Payment:
    """`state`: captured, uncaptured, disputed or reversed."""

    account: str
    ref: str
    charge: str
    currency: str
    captured_minor: int
    customer: str | None
    state: str
    created_at: int


@dataclass(frozen=True, kw_only=True)
class Refund:
    """A refund as the book shows it at one instant; `by` is api or dashboard."""

    id: str
    account: str
    payment_ref: str
    charge: str
    marker: str | None
    key: str | None
    amount_minor: int
    currency: str
    reason: str | None
    metadata: Mapping[str, str]
    created_at: int
    by: str
    status: str


REFUND_AT = """
    SELECT refunds.*, (SELECT status FROM statuses WHERE refund_id = refunds.id AND at <= :at
                       ORDER BY at DESC, seq DESC LIMIT 1) AS status
    FROM refunds"""


class Book:
    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing of this; only a crashed machine could.
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.executescript(SCHEMA)
        self._open_accounts()

    def _open_accounts(self) -> None:
        for account, profile in default_profiles().items():
            self.db.execute(
                "INSERT OR IGNORE INTO accounts VALUES (?, ?)",
                (account, json.dumps(profile.as_json())),
            )

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; inside another transaction it joins that one."""
        if self.db.in_transaction:
            yield
            return
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def reset(self) -> None:
        """Forget everything but the numbers already given out, so that no id comes twice."""
        with self.transaction():
            for table in TABLES:
                self.db.execute(f"DELETE FROM {table}")
            self.db.execute("DELETE FROM facts WHERE name <> 'minted'")
            self._open_accounts()

    # Facts and the clock

    def fact(self, name: str, default: str = "") -> str:
        row = self.db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(row["value"]) if row else default

    def set_fact(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def mint(self) -> int:
        """The next number of this book; the source of every id."""
        with self.transaction():
            number = int(self.fact("minted", "0")) + 1
            self.set_fact("minted", str(number))
        return number

    def now(self) -> int:
        return time.time_ns() // 1000 + int(self.fact("clock_ahead", "0"))

    def advance(self, microseconds: int) -> None:
        self.set_fact("clock_ahead", str(int(self.fact("clock_ahead", "0")) + microseconds))

    # Accounts

    def profile(self, account: str) -> Profile | None:
        row = self.db.execute(
            "SELECT profile FROM accounts WHERE account = ?", (account,)
        ).fetchone()
        return Profile().changed(json.loads(row["profile"])) if row else None

    def profiles(self) -> dict[str, Profile]:
        rows = self.db.execute("SELECT * FROM accounts ORDER BY account").fetchall()
        return {row["account"]: Profile().changed(json.loads(row["profile"])) for row in rows}

    def set_profile(self, account: str, profile: Profile) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO accounts VALUES (?, ?)",
            (account, json.dumps(profile.as_json())),
        )

    # Payments

    def payment(self, account: str, ref: str | None, charge: str | None = None) -> Payment | None:
        row = self.db.execute(
            "SELECT * FROM payments WHERE account = ? AND (ref = ? OR charge = ?)",
            (account, ref, charge),
        ).fetchone()
        return Payment(**row) if row else None

    def put_payment(self, payment: Payment) -> None:
        """Create the payment, or change what was captured; its refunds stay."""
        self.db.execute(
            """INSERT INTO payments VALUES (:account, :ref, :charge, :currency, :captured_minor,
                                            :customer, :state, :created_at)
               ON CONFLICT (account, ref) DO UPDATE SET currency = excluded.currency,
                 captured_minor = excluded.captured_minor, customer = excluded.customer,
                 state = excluded.state""",
            vars(payment),
        )

    def remaining_minor(self, payment: Payment, at: int) -> int:
        taken = sum(
            refund.amount_minor
            for refund in self.refunds(payment.account, at, payment_ref=payment.ref)
            if refund.status not in VOID_STATUSES
        )
        return payment.captured_minor - taken

    # Refunds

    def add_refund(self, refund: Refund, number: int, course: list[tuple[int, str]]) -> None:
        """Write a refund and the statuses it has and will have, as (instant, status)."""
        self.db.execute(
            """INSERT INTO refunds VALUES (:seq, :id, :account, :payment_ref, :charge, :marker,
                 :key, :amount_minor, :currency, :reason, :metadata, :created_at, :by)""",
            vars(refund) | {"seq": number, "metadata": json.dumps(refund.metadata)},
        )
        self.db.executemany(
            "INSERT INTO statuses (refund_id, at, status) VALUES (?, ?, ?)",
            [(refund.id, at, status) for at, status in course],
        )

    def set_status(self, refund_id: str, status: str, at: int) -> None:
        """The status from `at` on; what was still to come is void."""
        with self.transaction():
            self.db.execute("DELETE FROM statuses WHERE refund_id = ? AND at > ?", (refund_id, at))
            self.db.execute(
                "INSERT INTO statuses (refund_id, at, status) VALUES (?, ?, ?)",
                (refund_id, at, status),
            )

    def set_metadata(self, refund_id: str, metadata: Mapping[str, str]) -> None:
        self.db.execute(
            "UPDATE refunds SET metadata = ? WHERE id = ?",
            (json.dumps(metadata), refund_id),
        )

    def refund(self, refund_id: str, at: int) -> Refund | None:
        row = self.db.execute(
            f"{REFUND_AT} WHERE id = :id AND created_at <= :at",
            {"id": refund_id, "at": at},
        ).fetchone()
        return refund_of(row) if row else None

    def refund_number(self, account: str, refund_id: str) -> int | None:
        row = self.db.execute(
            "SELECT seq FROM refunds WHERE account = ? AND id = ?", (account, refund_id)
        ).fetchone()
        return row["seq"] if row else None

    def refunds(
        self,
        account: str,
        at: int,
        *,
        payment_ref: str | None = None,
        created_from: int | None = None,
        created_until: int | None = None,
        after_seq: int | None = None,
        before_seq: int | None = None,
        newest_first: bool = False,
        limit: int = -1,
    ) -> list[Refund]:
        """Refunds as they stood at `at`, in the order in which they were executed."""
        rows = self.db.execute(
            f"""{REFUND_AT} WHERE account = :account AND created_at <= :at
                AND (:payment_ref IS NULL OR payment_ref = :payment_ref)
                AND (:created_from IS NULL OR created_at >= :created_from)
                AND (:created_until IS NULL OR created_at < :created_until)
                AND (:after_seq IS NULL OR seq > :after_seq)
                AND (:before_seq IS NULL OR seq < :before_seq)
                ORDER BY seq {"DESC" if newest_first else "ASC"} LIMIT :limit""",
            {
                "account": account,
                "at": at,
                "payment_ref": payment_ref,
                "created_from": created_from,
                "created_until": created_until,
                "after_seq": after_seq,
                "before_seq": before_seq,
                "limit": limit,
            },
        )
        return [refund_of(row) for row in rows]

    def seen_before(self, account: str, marker: str | None, key: str | None) -> bool:
        """Whether a refund with this marker or key stands in the book."""
        row = self.db.execute(
            "SELECT 1 FROM refunds WHERE account = ? AND (marker = ? OR key = ?)",
            (account, marker, key),
        ).fetchone()
        return row is not None


def refund_of(row: sqlite3.Row) -> Refund:
    values = {name: row[name] for name in row.keys() if name != "seq"}  # noqa: SIM118
    return Refund(**values | {"metadata": json.loads(row["metadata"])})
