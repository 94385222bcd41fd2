"""Addresses whose parts come from outside: an order's reference may hold any character."""

from __future__ import annotations

import re

# Browsers resolve a segment "." or ".." away, however it is written; such a one carries a "~".
_DOTS = re.compile(r"(^|/)(?=~*\.{1,2}(?:/|$))")
_MARKED = re.compile(r"(^|/)~(?=~*\.{1,2}(?:/|$))")


class OrderRef:
    """An order's reference as the rest of an address, slashes and all."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return _MARKED.sub(r"\1", value)

    def to_url(self, value: str) -> str:
        return _DOTS.sub(r"\1~", value)
