"""Text from outside, checked at the edge: no card numbers, no control characters, no odd links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from refunds.domain.errors import Refusal

_DIGIT_RUN = re.compile(r"\d(?:[ -]{0,3}\d){12,}", re.ASCII)
_BETWEEN_DIGITS = re.compile(r"[ -]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Lengths and first digits of the cards in use. One long order number in ten passes Luhn, so a
# reference is refused only where it also looks like somebody's card.
_CARD = re.compile(r"(?:3[0-9]|4|5[0-8]|2[2-7]|6)[0-9]+", re.ASCII)
_CARD_LENGTHS = (14, 15, 16, 19)
_CARD_GROUPS_MAX = 5  # 4 4 4 4 3; a card is written in no more
_INSTANT = 'Write instants with a zone, such as "2026-11-29T14:02:03Z".'


def _luhn(digits: str) -> bool:
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def has_card_number(text: str) -> bool:
    """Whether 13 to 19 digits in a row (spaces and hyphens aside) pass the Luhn check (T14).

    Where more digits stand beside them, such as a date of expiry, they must also look like a card:
    one long number in ten passes Luhn.
    """
    return looks_like_card(text) or any(
        13 <= len(digits) <= 19 and _luhn(digits)
        for digits in map("".join, _groups_of_digits(text))
    )


def looks_like_card(text: str) -> bool:
    """Whether a text holds digits of a card network's form that pass the Luhn check."""
    return any(
        len(digits) in _CARD_LENGTHS and _CARD.fullmatch(digits) and _luhn(digits)
        for groups in _groups_of_digits(text)
        for digits in _neighbours(groups)
    )


def _groups_of_digits(text: str) -> Iterator[list[str]]:
    """Runs of 13 digits or more, each as the groups in which it is written."""
    for run in _DIGIT_RUN.findall(unicodedata.normalize("NFKC", text)):
        yield _BETWEEN_DIGITS.split(run)


def _neighbours(groups: list[str]) -> Iterator[str]:
    """Every number that a few neighbouring groups make together."""
    for first in range(len(groups)):
        digits = ""
        for group in groups[first : first + _CARD_GROUPS_MAX]:
            digits += group
            yield digits


def check_text(text: str, *, field: str, length_max: int) -> str:
    """The same text; raises Refusal text_too_long, text_card_number or text_control."""
    _check_form(text, field, length_max)
    if has_card_number(text):
        raise _card_number(field)
    return text


def check_ref(text: str, *, field: str, length_max: int = 128) -> str:
    """The same reference; raises as `check_text`, but lets long order and run numbers pass."""
    _check_form(text, field, length_max)
    if looks_like_card(text):
        raise _card_number(field)
    return text


def _check_form(text: str, field: str, length_max: int) -> None:
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


def _card_number(field: str) -> Refusal:
    return Refusal(
        "text_card_number",
        f"{field} seems to hold a card number.",
        what_to_do="Remove it; name the payment by its reference.",
        field=field,
    )


def check_links(links: Mapping[str, str], hosts: Iterable[str]) -> None:
    """Raise Refusal unless every link is https to an allowed host (or its subdomains)."""
    allowed = allowed_links(links, hosts)
    for name in links:
        if name not in allowed:
            raise Refusal(
                "link_not_allowed",
                f"links.{name} is not an https link to an allowed host.",
                what_to_do="Allow the host in AFTERSEND_LINK_HOSTS, or leave the link out.",
                field="links",
            )


def allowed_links(links: Mapping[str, str], hosts: Iterable[str]) -> dict[str, str]:
    """Those of the links that are https to an allowed host (or its subdomains)."""
    allowed = tuple(hosts)
    found = {}
    for name, link in links.items():
        host = _https_host(link)
        fits = any(host == each or host.endswith(f".{each}") for each in allowed)
        if host and fits and len(link) <= 500:
            found[name] = link
    return found


def _https_host(link: str) -> str:
    """The host of an https link; "" for anything that is not one."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    return parts.hostname or "" if parts.scheme == "https" else ""


def parse_instant(text: str) -> datetime:
    """The instant of an ISO 8601 text with a zone.

    Raises Refusal datetime_naive, or field_format; the caller knows the field.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Refusal(
            "field_format",
            f"{text[:40]!r} is not an ISO 8601 instant.",
            what_to_do=_INSTANT,
        ) from None
    offset = at.utcoffset()
    if offset is None:
        raise Refusal("datetime_naive", f"{text[:40]!r} has no time zone.", what_to_do=_INSTANT)
    # The database takes offsets below 16 h; the world's own end at 14.
    if not 1970 <= at.year <= 2999 or abs(offset) > timedelta(hours=14):
        raise Refusal(
            "field_format",
            f"{text[:40]!r} is not in the years 1970 to 2999 with an offset of at most 14 h.",
            what_to_do=_INSTANT,
        )
    return at
