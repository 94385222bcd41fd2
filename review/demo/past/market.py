"""The shop of the past: which order a wish is about, sold some time before, with its facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from refunds.models import Order, Payment
from review.demo.past.desk import Desk
from review.demo.past.rows import Sold
from review.demo.past.stock import BIG_GOODS, FACTS, GOODS

# The demo's supervisor allows links to these hosts.
_SHOP = "shop.example"
_HELP_DESK = "help.example"
_FIRST_ORDER = 5101
_CUSTOMERS = 90
_FOR_GOOD = timedelta(days=365)
_SHARE_OF_KNOWN_ORDERS = 0.35
_OPERATIONS_OF_ONE_ORDER_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The order that a story needs."""

    account: str
    currency: str
    big: bool = False
    fresh: bool = False  # an order of its own, which no other story is told about later
    captured_days_ago: int | None = None


@dataclass(slots=True)
class Market:
    """Sells, and finds what was sold."""

    desk: Desk
    _sold: list[tuple[Wanted, Sold]] = field(default_factory=list)

    def order_for(self, wanted: Wanted, at: datetime) -> Sold:
        """An order with room on its payment: one that is known, or one that is sold now."""
        chance = self.desk.chance
        if not wanted.fresh and chance.random() < _SHARE_OF_KNOWN_ORDERS:
            for before, sold in self._sold:
                if before == wanted and self._is_free(sold, at):
                    return sold
        sold = self._sell(wanted, at)
        self._sold.append((wanted, sold))
        if wanted.fresh:
            sold.busy_until = at + _FOR_GOOD
        return sold

    def _is_free(self, sold: Sold, at: datetime) -> bool:
        payment = sold.payment
        return (
            sold.busy_until < at - timedelta(hours=1)
            and sold.operation_count < _OPERATIONS_OF_ONE_ORDER_MAX
            and payment.state == "captured"
            and not payment.halted
            and payment.held_minor == 0
            and payment.available_minor * 2 >= payment.captured_minor
        )

    def _sell(self, wanted: Wanted, at: datetime) -> Sold:
        chance, number = self.desk.chance, len(self._sold)
        lines = self._lines(wanted)
        days = wanted.captured_days_ago or chance.randint(2, 45)
        captured_at = at - timedelta(days=days, minutes=chance.randint(0, 900))
        returned_at = captured_at + (at - captured_at) * chance.uniform(0.4, 0.9)
        back = chance.choice((0, 0, 1, 2, 2))  # not returned, on its way, in the warehouse
        ref = str(_FIRST_ORDER + number)
        order = Order(
            ref=ref,
            currency=wanted.currency,
            feed_seq=1,
            facts_as_of=at,
            customer_ref=f"cus_{3001 + chance.randrange(_CUSTOMERS)}",
            return_state="",
            fulfilment_state="delivered",
            placed_at=captured_at - timedelta(minutes=chance.randint(1, 40)),
            lines=lines,
            facts=self._facts(returned_at, at, is_back=back == 2),
            links={
                "order": f"https://{_SHOP}/orders/{ref}",
                "ticket": f"https://{_HELP_DESK}/t/{20100 + number}",
            },
        )
        payment = Payment(
            order=order,
            provider_account=wanted.account,
            ref=f"pi_{ref}",
            currency=wanted.currency,
            captured_minor=sum(line["amount_minor"] for line in lines),
            captured_at=captured_at,
        )
        sold = self.desk.sell(order, payment, captured_at)
        if back > 0:
            self.desk.feed(sold, returned_at, return_state="requested")
        if back > 1:
            later = returned_at + (at - returned_at) / 2
            self.desk.feed(sold, later, return_state="received")
        return sold

    def _lines(self, wanted: Wanted) -> list[dict[str, Any]]:
        chance = self.desk.chance
        goods = list(GOODS[wanted.currency])
        chosen = chance.sample(goods, k=chance.randint(1, 3))
        if wanted.big:
            chosen.insert(0, chance.choice(BIG_GOODS[wanted.currency]))
        lines = []
        for name, price_minor in chosen:
            quantity = chance.choice((1, 1, 1, 2)) if not wanted.big else 1
            lines.append(
                {"name": name, "quantity": quantity, "amount_minor": price_minor * quantity}
            )
        return lines

    def _facts(self, since: datetime, until: datetime, *, is_back: bool) -> list[dict[str, Any]]:
        """One fact of each system at most; the warehouse knows only what is back."""
        chance = self.desk.chance
        drawn = chance.sample(FACTS, k=chance.randint(2, 4))
        by_source = {fact[2]: fact for fact in drawn if is_back or fact[2] != "wms"}
        chosen = list(by_source.values()) or [FACTS[-1]]
        return [
            {
                "label": label,
                "value": value,
                "source": source,
                "at": (since + (until - since) * chance.random()).isoformat(timespec="seconds"),
            }
            for label, value, source in chosen
        ]
