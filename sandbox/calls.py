"""The record of every request, in the order received, also of those that got no answer."""

import hashlib
import json
from typing import Any

from sandbox.book import Book
from sandbox.instants import iso
from sandbox.operations import Call, Create, Operation

_PAGE_MAX = 10_000


class Calls:
    def __init__(self, book: Book) -> None:
        self._book = book

    def record(
        self,
        account: str,
        call: Call,
        url: str,
        operation: Operation | None,
        received_at: int,
    ) -> int:
        """Write the request down as received; its number."""
        written = self._book.db.execute(
            """INSERT INTO calls (account, method, path, "on", key, marker, body_sha256,
                                  received_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                account,
                call.method,
                url,
                operation.on if operation else None,
                call.key,
                operation.marker if isinstance(operation, Create) else None,
                hashlib.sha256(call.body).hexdigest(),
                received_at,
            ),
        )
        number = written.lastrowid
        assert number is not None
        version = call.headers.get("stripe-version")
        if version is not None:
            self._book.db.execute("INSERT INTO call_versions VALUES (?, ?)", (number, version))
        return number

    def create_count(self, account: str, marker: str | None) -> int:
        """How many requests so far asked for the refund with this marker."""
        row = self._book.db.execute(
            """SELECT count(*) FROM calls
               WHERE account = ? AND marker = ? AND "on" = 'create'""",
            (account, marker),
        ).fetchone()
        return int(row[0])

    def note_faults(self, number: int, names: list[str]) -> None:
        if names:
            self._book.db.execute(
                "UPDATE calls SET faults = ? WHERE seq = ?",
                (json.dumps(names), number),
            )

    def note_answer(self, number: int, answered: int | str) -> None:
        """`answered`: the HTTP status that went out, or `dropped`."""
        self._book.db.execute(
            "UPDATE calls SET answered_at = ?, answered = ? WHERE seq = ?",
            (self._book.now(), json.dumps(answered), number),
        )

    def shown(self, account: str | None, after: int) -> list[dict[str, Any]]:
        """Calls numbered above `after` as JSON; `answered` is null while one still waits."""
        rows = self._book.db.execute(
            """SELECT calls.*, api_version FROM calls LEFT JOIN call_versions USING (seq)
               WHERE (:account IS NULL OR account = :account)
               AND seq > :after ORDER BY seq LIMIT :limit""",
            {"account": account, "after": after, "limit": _PAGE_MAX},
        )
        return [
            {
                "seq": row["seq"],
                "account": row["account"],
                "method": row["method"],
                "path": row["path"],
                "on": row["on"],
                "key": row["key"],
                "marker": row["marker"],
                "body_sha256": row["body_sha256"],
                "api_version": row["api_version"],
                "received_at": iso(row["received_at"]),
                "answered_at": iso(row["answered_at"]) if row["answered_at"] else None,
                "answered": json.loads(row["answered"]) if row["answered"] else None,
                "faults": json.loads(row["faults"]),
            }
            for row in rows
        ]
