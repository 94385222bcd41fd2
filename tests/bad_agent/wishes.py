"""What ought to be refunded, known before the first call: drawn from the seed and nothing else."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

SINGLE_COUNT = 200
SEPARATE_COUNT = 20
CURRENCIES = ("USD", "EUR", "GBP")
REASON_CODES = ("damaged_item", "not_received", "returned_item", "goodwill")
# Accounts whose lost answers the machine settles, so that every wish comes to an end by itself.
ACCOUNTS = ("plain-main", "plain-forever", "plain-nokeys")


@dataclass(frozen=True, slots=True)
class Wish:
    """One refund somebody really wants; amounts in minor units. `separate` is a second, equal
    one of an order whose first has ended."""

    number: int
    order_ref: str
    payment_ref: str
    account: str
    amount_minor: int
    currency: str
    reason_code: str
    separate: bool = False

    @property
    def in_the_book(self) -> tuple[str, int, str]:
        """How the provider's book must show it."""
        return self.payment_ref, self.amount_minor, self.currency

    @property
    def captured_minor(self) -> int:
        """Enough for this one, an equal one, and for the mutations to be tempting."""
        return self.amount_minor * 6

    def arguments(self) -> dict[str, Any]:
        """The call's arguments as an honest agent sends them, without its call's identity."""
        return {
            "order_ref": self.order_ref,
            "payment_ref": self.payment_ref,
            "amount_minor": self.amount_minor,
            "currency": self.currency,
            "reason_code": self.reason_code,
            "reason_text": "The customer sent a photo.",
            "requested_by": {"kind": "customer", "ref": f"cus_{self.number}"},
            "wait_seconds": 0,
        }

    def decimal(self) -> str:
        """The amount as an agent may also write it; all our currencies have two places."""
        return f"{self.amount_minor // 100}.{self.amount_minor % 100:02d}"


def draw_wishes(seed: int) -> tuple[list[Wish], list[Wish]]:
    """(the single ones, the equal-but-separate ones), the same for the same seed."""
    draw = random.Random(seed)
    single = [_wish(draw, number) for number in range(SINGLE_COUNT)]
    twice = draw.sample(single, SEPARATE_COUNT)
    return single, [_second(first, SINGLE_COUNT + n) for n, first in enumerate(twice)]


def _wish(draw: random.Random, number: int) -> Wish:
    name = f"{number:03d}-{draw.randrange(16**6):06x}"
    return Wish(
        number=number,
        order_ref=f"bad-{name}",
        payment_ref=f"pi_bad_{name}",
        account=draw.choice(ACCOUNTS),
        amount_minor=draw.randrange(500, 9_000),
        currency=draw.choice(CURRENCIES),
        reason_code=draw.choice(REASON_CODES),
    )


def _second(first: Wish, number: int) -> Wish:
    return Wish(
        number=number,
        order_ref=first.order_ref,
        payment_ref=first.payment_ref,
        account=first.account,
        amount_minor=first.amount_minor,
        currency=first.currency,
        reason_code=first.reason_code,
        separate=True,
    )
