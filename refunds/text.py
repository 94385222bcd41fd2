"""Text from outside, checked at the edge: no card numbers, no control characters, no odd links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from refunds.domain.errors import Refusal

_DIGIT_RUN = re.compile(r"(?:\d[ -]?){12,18}\d", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _luhn(digits: str) -> bool:
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def has_card_number(text: str) -> bool:
    """Whether 13 to 19 digits in a row (spaces and hyphens aside) pass the Luhn check (T14)."""
    for run in _DIGIT_RUN.findall(text):
        digits = re.sub(r"\D", "", run)
        if 13 <= len(digits) <= 19 and _luhn(digits):
            return True
    return False


def check_text(text: str, *, field: str, length_max: int) -> str:
    """The same text; raises Refusal text_too_long, text_card_number or text_control."""
    if len(text) > length_max:
        raise Refusal(
            "text_too_long",
            f"{field} has {len(text)} characters; {length_max} are allowed.",
            what_to_do="Shorten it; put the long form into the ticket.",
            field=field,
        )
    if _CONTROL.search(text):
        raise Refusal(
            "text_control",
            f"{field} has control characters.",
            what_to_do="Send plain text.",
            field=field,
        )
    if has_card_number(text):
        raise Refusal(
            "text_card_number",
            f"{field} seems to hold a card number.",
            what_to_do="Remove it; name the payment by its reference.",
            field=field,
        )
    return text


def check_links(links: Mapping[str, str], hosts: Iterable[str]) -> None:
    """Raise Refusal unless every link is https to an allowed host (or its subdomains)."""
    allowed = tuple(hosts)
    for name, link in links.items():
        parts = urlsplit(link)
        host = parts.hostname or ""
        fits = any(host == each or host.endswith(f".{each}") for each in allowed)
        if parts.scheme != "https" or not fits or len(link) > 500:
            raise Refusal(
                "link_not_allowed",
                f"links.{name} is not an https link to an allowed host.",
                what_to_do="Allow the host in AFTERSEND_LINK_HOSTS, or leave the link out.",
                field="links",
            )
