"""Amounts at Stripe: where its integers are not the minor units of ISO 4217."""

from __future__ import annotations

from refunds.domain.errors import Refusal
from refunds.domain.money import exponent

# Currencies whose minor units at Stripe are not ISO 4217's (docs.stripe.com/currencies):
# written with two digits that must be 00 (ISK, UGX), or without digits where ISO has them.
TWO_DIGITS_ALWAYS_ZERO = frozenset({"ISK", "UGX"})
ZERO_DIGITS = frozenset({"MGA"})


def to_stripe_amount(amount_minor: int, currency: str) -> int:
    """ISO minor units to Stripe's integer; raises Refusal where Stripe cannot express it."""
    if currency in TWO_DIGITS_ALWAYS_ZERO:
        return amount_minor * 100
    if currency in ZERO_DIGITS:
        if amount_minor % 100:
            raise Refusal(
                "amount_fraction",
                f"Stripe takes {currency} without a fraction.",
                what_to_do="Round the refund with the customer and propose that amount.",
                field="amount",
            )
        return amount_minor // 100
    if exponent(currency) == 3 and amount_minor % 10:
        raise Refusal(
            "amount_fraction",
            f"Stripe takes {currency} amounts whose last digit is 0.",
            what_to_do="Propose an amount that ends in 0.",
            field="amount",
        )
    return amount_minor


def from_stripe_amount(amount: int | None, currency: str | None) -> int | None:
    """Stripe's integer to ISO minor units; None where it is not expressible."""
    if amount is None or currency is None:
        return None
    if currency in TWO_DIGITS_ALWAYS_ZERO:
        return amount // 100 if amount % 100 == 0 else None
    return amount * 100 if currency in ZERO_DIGITS else amount
