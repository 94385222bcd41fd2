"""The key store of the provider: one request per key, as the account's profile keeps it."""

import json
from dataclasses import dataclass

from sandbox.book import Book
from sandbox.instants import span
from sandbox.operations import Answer
from sandbox.profiles import Profile


@dataclass(frozen=True)
class KeptKey:
    """`answer` None: the first request under this key is still being executed."""

    digest: str
    answer: Answer | None


class Keys:
    def __init__(self, book: Book) -> None:
        self._book = book

    def find(self, account: str, key: str, profile: Profile, at: int) -> KeptKey | None:
        """What is known of the key at `at`; a key past its window is pruned here."""
        row = self._book.db.execute(
            "SELECT * FROM keys WHERE account = ? AND key = ?", (account, key)
        ).fetchone()
        if row is None:
            return None
        window = profile.key_window_seconds
        if window is not None and at >= row["first_used_at"] + span(window):
            self.forget(account, key)
            return None
        if row["status"] is None:
            return KeptKey(row["digest"], None)
        return KeptKey(
            row["digest"],
            Answer(
                status=row["status"],
                body=row["body"],
                headers=tuple((name, value) for name, value in json.loads(row["headers"])),
                content_type=row["content_type"],
            ),
        )

    def claim(self, account: str, key: str, digest: str, at: int) -> None:
        """Mark the key as in use by a request that is still being executed."""
        self._book.db.execute(
            """INSERT OR IGNORE INTO keys (account, key, digest, first_used_at)
               VALUES (?, ?, ?, ?)""",
            (account, key, digest, at),
        )

    def keep(self, account: str, key: str, digest: str, answer: Answer, at: int) -> None:
        """Store the answer that every later request under this key gets again.

        The window runs from the first use: a claim made before keeps its instant.
        """
        self._book.db.execute(
            """INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (account, key) DO UPDATE SET status = excluded.status,
                 headers = excluded.headers, body = excluded.body,
                 content_type = excluded.content_type""",
            (
                account,
                key,
                digest,
                answer.status,
                json.dumps(answer.headers),
                answer.body,
                answer.content_type,
                at,
            ),
        )

    def forget(self, account: str, key: str) -> None:
        self._book.db.execute("DELETE FROM keys WHERE account = ? AND key = ?", (account, key))
