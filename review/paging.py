"""Pages of a list, and whether a list has changed since it was drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from django.http import Http404

PAGE_ROWS = 50
_DIGITS_MAX = 17


def whole(text: str | None) -> int | None:
    """The whole number that an address or a form carries; None for anything else."""
    if not text or len(text) > _DIGITS_MAX or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


def signed(text: str) -> int | None:
    """The same, and below zero with a minus before it."""
    size = whole(text.removeprefix("-"))
    return -size if size and text.startswith("-") else size


def signature(rows: Iterable[tuple[object, int]]) -> str:
    """A short text for the rows on the screen: six characters for each id and version."""
    return "".join(_mark(identity, version) for identity, version in rows)


def changed_since(before: str, rows: Iterable[tuple[object, int]]) -> int:
    """How many rows are new, gone or moved, compared with a signature."""
    then = {before[start : start + 6] for start in range(0, len(before), 6)}
    now = {_mark(identity, version) for identity, version in rows}
    return max(len(now - then), len(then - now))


def _mark(identity: object, version: int) -> str:
    return hashlib.sha256(f"{identity}:{version}".encode()).hexdigest()[:6]


def cursor_instant(text: str) -> datetime:
    """The instant of a cursor, in UTC; Http404 for one that we cannot have written."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Http404 from error
