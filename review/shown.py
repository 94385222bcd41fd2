"""What a list had on the screen, carried in the address of its poll: ids and versions."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.http import Http404


def shown_text(rows: Iterable[tuple[UUID, int]]) -> str:
    """Rows as a text of an address; `read_shown` reads it back."""
    return "~".join(f"{identity.hex}.{version}" for identity, version in rows)


def read_shown(text: str) -> dict[UUID, int]:
    """Version by id; raises Http404 for a text that we cannot have written."""
    found = {}
    for part in filter(None, text.split("~")):
        identity, _, version = part.partition(".")
        try:
            found[UUID(identity)] = int(version)
        except ValueError as error:
            raise Http404 from error
    return found
