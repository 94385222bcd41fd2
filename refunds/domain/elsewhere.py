"""What follows from a refund that was made elsewhere: a person is asked, or it is listed. Pure.

`case`, or `list_until 2026-12-31` for a month in which another system goes on refunding: refunds
made before that day (UTC) are listed and counted, and nobody is asked about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

FORM = 'write "case" or "list_until" and a day, such as "list_until 2026-12-31"'


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`listed_until` None: a person is asked about every refund that was made elsewhere."""

    listed_until: date | None = None

    def asks_a_person(self, made_at: datetime) -> bool:
        """Whether a refund made at this instant is somebody's work."""
        return self.listed_until is None or made_at.astimezone(UTC).date() >= self.listed_until


def parse(value: object) -> Elsewhere:
    """Read the setting; raises ValueError that says what to write."""
    if value == "case":
        return Elsewhere()
    word, _, day = str(value).partition(" ")
    try:
        if word != "list_until":
            raise ValueError
        return Elsewhere(date.fromisoformat(day.strip()))
    except ValueError:
        raise ValueError(f"{value!r} says nothing of refunds made elsewhere; {FORM}") from None
