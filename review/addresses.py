"""Addresses whose parts come from outside: an order's reference may hold any character."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from django.urls import reverse

# Browsers resolve a segment "." or ".." away, however it is written; such a one carries a "~".
_DOTS = re.compile(r"(^|/)(?=~*\.{1,2}(?:/|$))")
_MARKED = re.compile(r"(^|/)~(?=~*\.{1,2}(?:/|$))")
# What may stand in a path as it is (RFC 3986, 3.3), a slash too.
_AS_IT_IS = "!$&'()*+,;=:@/~"


class OrderRef:
    """An order's reference as the rest of an address, slashes and all."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return _MARKED.sub(r"\1", value)

    def to_url(self, value: str) -> str:
        return _DOTS.sub(r"\1~", value)


def of_orders() -> Callable[[str], str]:
    """What gives the address of an order's page: found once, for a list asks for fifty of them."""
    before = reverse("order", kwargs={"order_ref": "0"}).removesuffix("0")
    to_url = OrderRef().to_url
    return lambda order_ref: before + quote(to_url(order_ref), safe=_AS_IT_IS)
