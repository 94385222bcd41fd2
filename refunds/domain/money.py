"""Amounts: integer minor units and ISO 4217 exponents. No float enters; Decimal only while parsing."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache

import iso4217

from refunds.domain.errors import Refusal

AMOUNT_MINOR_MAX = 999_999_999_999
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?", re.ASCII)
_NARROW_SPACE = "\u202f"


@cache
def exponent(currency: str) -> int:
    """Digits after the point by ISO 4217 (JPY 0, EUR 2, KWD 3); raises Refusal currency_unknown."""
    try:
        digits = iso4217.Currency(currency).exponent
    except ValueError:
        digits = None
    if digits is None or not re.fullmatch("[A-Z]{3}", currency, re.ASCII):
        raise Refusal(
            "currency_unknown",
            f"{currency!r} is not an ISO 4217 currency with minor units.",
            what_to_do="Send the three capital letters of the payment's currency, such as EUR.",
            field="currency",
        )
    return int(digits)


def _refuse(code: str, detail: str, what_to_do: str) -> Refusal:
    return Refusal(code, detail, what_to_do=what_to_do, field="amount")


def check_minor(amount_minor: int) -> int:
    """The same amount, if it is between 1 and 999 999 999 999 minor units; raises Refusal."""
    if amount_minor == 0:
        raise _refuse("amount_zero", "The amount is zero.", "Send the amount to refund.")
    if amount_minor < 0:
        raise _refuse("amount_negative", "The amount is negative.", "Send it without a sign.")
    if amount_minor > AMOUNT_MINOR_MAX:
        raise _refuse(
            "amount_too_large",
            f"The amount is above {AMOUNT_MINOR_MAX} minor units.",
            "Check the amount; split it only if the payment was split.",
        )
    return amount_minor


def parse_amount(text: str, currency: str) -> int:
    """Minor units of a decimal string such as "79.00"; no rounding ever.

    Raises Refusal: amount_format (not digits with an optional point), amount_fraction (more
    digits than the currency has), amount_zero, amount_negative, amount_too_large.
    """
    digits = exponent(currency)
    if re.fullmatch(r"-[0-9]+(\.[0-9]+)?", text, re.ASCII):
        raise _refuse("amount_negative", "The amount is negative.", "Send it without a sign.")
    if not _DECIMAL.fullmatch(text):
        raise _refuse(
            "amount_format",
            f"{text[:40]!r} is not an amount.",
            'Write digits with a point for the fraction and nothing else, such as "79.00".',
        )
    # Also where the further digits are zeros: "1.050" EUR may be meant as a thousand and fifty.
    if len(text.partition(".")[2]) > digits:
        raise _refuse(
            "amount_fraction",
            f"{currency} has {digits} digits after the point; {text} has more.",
            f"Send at most {digits} digits after the point.",
        )
    return check_minor(int(Decimal(text).scaleb(digits)))


def decimal_text(amount_minor: int, currency: str) -> str:
    """Plain decimal form for machines: 7900 EUR -> "79.00", 1000 JPY -> "1000"."""
    return f"{Decimal(amount_minor).scaleb(-exponent(currency)):f}"


def display_number(amount_minor: int, currency: str) -> str:
    """Form for people, grouped by narrow spaces: 124000 EUR -> "1 240.00" (U+202F between)."""
    whole, _, fraction = decimal_text(amount_minor, currency).partition(".")
    grouped = f"{int(whole):,}".replace(",", _NARROW_SPACE)
    if amount_minor < 0 and not grouped.startswith("-"):
        grouped = f"-{grouped}"
    return f"{grouped}.{fraction}" if fraction else grouped


def display(amount_minor: int, currency: str) -> str:
    """Number and code, the code after it: "79.00 EUR"."""
    return f"{display_number(amount_minor, currency)} {currency}"
