"""Notices: what the provider tells about a refund, unasked, and how it may go wrong.

A notice is written into the book together with the status that it tells of. Its signature
carries real time, for the receiver's clock is not ours; everything else is control clock.
"""

import asyncio
import http.client
import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sandbox.book import Book, Refund
from sandbox.dialects import Dialect
from sandbox.faults import Plan, Subject
from sandbox.instants import iso, span
from sandbox.profiles import Profile

_SEND_TIMEOUT_SECONDS = 10  # as the more impatient of the real ones wait
_ATTEMPTS_MAX = 8
_RETRY_SECONDS_MAX = 60
_LATE_SECONDS = 5
_SKEW_SECONDS = 600

# Sent once in place of the true notice and never again, whatever the receiver says.
_FALSE_TWISTS = ("notice_forged", "notice_old", "notice_future", "notice_no_amount")


class NoticeQueue:
    """Notices that are to be sent, in the book."""

    def __init__(self, book: Book, plan: Plan) -> None:
        self._book = book
        self._plan = plan

    def add(self, refund: Refund, profile: Profile, status_at: int) -> None:
        """A notice of the refund as it stands at `status_at`, if the account wants any."""
        if not profile.notices or profile.webhook_url is None:
            return
        twists = self._plan.draw(
            Subject(
                account=refund.account,
                on="notice",
                marker=refund.marker,
                key=refund.key,
                payment=refund.payment_ref,
                refund=refund.id,
            )
        )
        due_at = status_at
        if "notice_late" in twists:
            due_at += span(twists.seconds("notice_late", _LATE_SECONDS))
        state = "lost" if "notice_lost" in twists else "queued"
        if state == "queued" and "notice_reversed" in twists:
            state = "held_back"
        copies = (twists.options("notice_duplicated") or {"copies": 1}).get("copies", 2)
        false = next((one for one in _FALSE_TWISTS if one in twists), None)
        options = (twists.options(false) or {}) if false else {}
        self._book.db.execute(
            """INSERT INTO notices (seq, account, refund_id, status_at, due_at, state, copies,
                                    twist, options) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                self._book.mint(),
                refund.account,
                refund.id,
                status_at,
                due_at,
                state,
                copies,
                false,
                json.dumps(options),
            ),
        )

    def drop_later(self, refund_id: str, at: int) -> None:
        """Notices of statuses that will not come any more."""
        self._book.db.execute(
            "DELETE FROM notices WHERE refund_id = ? AND status_at > ?", (refund_id, at)
        )

    def shown(self) -> list[dict[str, Any]]:
        """Every notice as JSON; state: queued, held_back, sent, lost or given_up."""
        return [
            {
                "number": row["seq"],
                "account": row["account"],
                "refund": row["refund_id"],
                "status_at": iso(row["status_at"]),
                "due_at": iso(row["due_at"]),
                "state": row["state"],
                "attempts": row["attempts"],
                "twist": row["twist"],
            }
            for row in self._book.db.execute("SELECT * FROM notices ORDER BY seq")
        ]


class NoticeSender:
    """Sends what is queued, one notice at a time."""

    def __init__(self, book: Book, dialects: Mapping[str, Dialect]) -> None:
        self._book = book
        self._dialects = dialects
        self._one_at_a_time = asyncio.Lock()

    @property
    def muted(self) -> bool:
        return self._book.fact("notices") == "never"

    def mute(self, muted: bool) -> None:
        self._book.set_fact("notices", "never" if muted else "now")

    async def send_due(self) -> None:
        """Send what is due by the control clock, in the order of the statuses."""
        async with self._one_at_a_time:
            while not self.muted:
                row = self._book.db.execute(
                    """SELECT * FROM notices WHERE state = 'queued' AND due_at <= ?
                       ORDER BY due_at, seq LIMIT 1""",
                    (self._book.now(),),
                ).fetchone()
                if row is None:
                    return
                await self._send(row)

    async def send_all(self, *, reverse: bool) -> dict[str, int]:
        """Send every notice whose status has come, the late and the held back ones too."""
        counts = {"sent": 0, "failed": 0}
        async with self._one_at_a_time:
            rows = self._book.db.execute(
                f"""SELECT * FROM notices WHERE state IN ('queued', 'held_back')
                    AND status_at <= ? ORDER BY status_at {"DESC" if reverse else "ASC"},
                    seq {"DESC" if reverse else "ASC"}""",
                (self._book.now(),),
            ).fetchall()
            for row in rows:
                counts["sent" if await self._send(row) else "failed"] += 1
        return counts

    def next_at(self) -> int | None:
        """The instant at which the next notice falls due; None when nothing is to be sent."""
        if self.muted:
            return None
        row = self._book.db.execute(
            "SELECT min(due_at) AS at FROM notices WHERE state = 'queued'"
        ).fetchone()
        return None if row["at"] is None else int(row["at"])

    async def _send(self, row: sqlite3.Row) -> bool:
        profile = self._book.profile(row["account"])
        refund = self._book.refund(row["refund_id"], row["status_at"])
        if profile is None or profile.webhook_url is None or refund is None:
            self._end(row, "lost")
            return False
        body, header = self._written(row, profile, refund)
        delivered = True
        for _ in range(row["copies"]):
            status = await asyncio.to_thread(_post, profile.webhook_url, body, header)
            delivered = delivered and status is not None and 200 <= status < 300
        if delivered or row["twist"] is not None:
            self._end(row, "sent")
        elif row["attempts"] + 1 >= _ATTEMPTS_MAX:
            self._end(row, "given_up")
        else:
            wait = span(min(2 ** row["attempts"], _RETRY_SECONDS_MAX))
            self._book.db.execute(
                """UPDATE notices SET state = 'queued', attempts = attempts + 1, due_at = ?
                   WHERE seq = ?""",
                (self._book.now() + wait, row["seq"]),
            )
        return delivered

    def _end(self, row: sqlite3.Row, state: str) -> None:
        with self._book.transaction():
            self._book.db.execute(
                "UPDATE notices SET state = ?, attempts = attempts + 1 WHERE seq = ?",
                (state, row["seq"]),
            )
            # One that waited for its successor has now been overtaken by it.
            self._book.db.execute(
                """UPDATE notices SET state = 'queued', due_at = ?
                   WHERE state = 'held_back' AND account = ? AND seq < ?""",
                (self._book.now(), row["account"], row["seq"]),
            )

    def _written(
        self, row: sqlite3.Row, profile: Profile, refund: Refund
    ) -> tuple[bytes, tuple[str, str]]:
        dialect = self._dialects[profile.dialect]
        options = json.loads(row["options"])
        shown = dialect.shown(refund)
        secret, timestamp = profile.webhook_secret, int(time.time())
        match row["twist"]:
            case "notice_forged":
                secret = f"not-{secret}"
                shown |= options.get("refund", {})
            case "notice_old":
                timestamp -= int(options.get("seconds", _SKEW_SECONDS))
            case "notice_future":
                timestamp += int(options.get("seconds", _SKEW_SECONDS))
            case "notice_no_amount":
                del shown[dialect.amount_field]
        body = dialect.notice(row["seq"], row["status_at"], shown)
        return body, dialect.signature(secret, timestamp, body)


def _post(url: str, body: bytes, header: tuple[str, str]) -> int | None:
    """One delivery; None when no answer came, which is retried like a refusal."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=_SEND_TIMEOUT_SECONDS
    )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(
            "POST",
            path or "/",
            body,
            {"Content-Type": "application/json", header[0]: header[1]},
        )
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
