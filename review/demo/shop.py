"""The demo's shop: orders fed through the feed, with payments that the sandbox holds as well."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from django.conf import settings
from django.utils import timezone

from refunds import feed
from refunds.models import Order, Payment
from refunds.providers import registry
from refunds.providers.base import Account

FED_BY: Final = "shop"
# As many as a lost answer is looked up for in its first quarter of a minute.
_LOOKUPS_THAT_LAG: Final = 5


@dataclass(frozen=True, slots=True)
class Sale:
    """One order with one payment, captured some days ago; amounts in minor units."""

    ref: str
    account: str
    currency: str
    lines: tuple[tuple[str, int, int], ...]
    return_state: str = ""
    days_ago: int = 9

    @property
    def payment_ref(self) -> str:
        return f"pi_{self.ref.replace('-', '')}"

    @property
    def captured_minor(self) -> int:
        return sum(amount for _, _, amount in self.lines)


SALES: Final = (
    Sale(
        "4821", "plain-main", "USD", (("Headphones", 1, 7900), ("Travel case", 1, 2900)), "received"
    ),
    Sale("4822", "plain-main", "USD", (("Desk lamp", 2, 9600),), "", 12),
    Sale("4823", "plain-main", "USD", (("Backpack", 1, 5400), ("Bottle", 2, 3800)), "requested", 4),
    Sale("4824", "plain-main", "USD", (("Keyboard", 1, 8900),), "received", 21),
    Sale("4825", "plain-main", "USD", (("Office chair", 1, 42900),), "", 3),
    Sale("4826", "plain-main", "USD", (("Standing desk", 1, 124000),), "", 15),
    Sale(
        "A-1051", "plain-main", "EUR", (("Trail shoe", 1, 8400), ("Socks", 3, 4850)), "received", 8
    ),
    Sale("A-1052", "plain-main", "EUR", (("Rain jacket", 1, 11900),), "received", 6),
    Sale(
        "A-1053", "plain-main", "EUR", (("Tent, two people", 1, 28900), ("Pegs", 1, 1900)), "", 30
    ),
    Sale("A-1054", "plain-main", "EUR", (("Blender", 1, 8990), ("Kettle", 1, 5990)), "received", 5),
    Sale("J-3001", "plain-main", "JPY", (("Rice cooker", 1, 13600),), "", 2),
    Sale("J-3002", "plain-lagged", "JPY", (("Tea set", 1, 9800),), "requested", 7),
    Sale("K-2207", "plain-main", "KWD", (("Perfume", 1, 26250), ("Gift wrap", 1, 12500)), "", 3),
    Sale("B-7731", "plain-blind", "GBP", (("Walking boots", 1, 11800),), "received", 10),
    Sale("B-7732", "plain-blind", "GBP", (("Wool coat", 1, 14900),), "", 18),
    Sale("B-7733", "plain-hooks", "GBP", (("Scarf", 1, 3900),), "", 1),
    Sale("C-0401", "plain-async", "EUR", (("Coffee machine", 1, 24900),), "received", 9),
    Sale("C-0402", "plain-async", "EUR", (("Grinder", 1, 7900),), "", 9),
    Sale("C-0403", "plain-nokeys", "EUR", (("Scale", 1, 4500),), "", 11),
    Sale("C-0404", "plain-forever", "EUR", (("Filter papers", 6, 2700),), "", 11),
    Sale("C-0405", "plain-unbounded", "EUR", (("Milk jug", 1, 1990),), "", 11),
    Sale("S-9001", "stripe-main", "USD", (("Camera bag", 1, 9900),), "received", 5),
    Sale("S-9002", "stripe-main", "USD", (("Tripod", 1, 15900),), "", 5),
    Sale("S-9003", "stripe-main", "EUR", (("Lens cap", 4, 3200),), "", 40),
    Sale("S-9004", "stripe-main", "EUR", (("Memory card", 2, 7800),), "", 40),
)


def sandbox_address() -> str:
    """Where the sandbox of this installation listens."""
    return str(settings.SANDBOX_URL or "http://127.0.0.1:8010")


def in_sandbox(account: Account) -> bool:
    """Whether this account's money is the sandbox's play money."""
    return account.mode == "sandbox" and account.base_url.startswith(f"{sandbox_address()}/")


class SandboxAway(Exception):
    """The sandbox did not answer its control API, or refused; the message says what it said."""


class Control:
    """The sandbox's control API; the demo tells the provider what was paid, and how to fail."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One command; raises SandboxAway."""
        request = Request(  # noqa: S310 - the address is this installation's own setting
            f"{self._address}/_control{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"X-Control-Token": self._token, "Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=10) as answer:  # noqa: S310
                return json.loads(answer.read())
        except (URLError, ValueError) as error:
            said = error.read().decode(errors="replace") if hasattr(error, "read") else str(error)
            raise SandboxAway(f"{method} {path}: {said}") from error

    def tell_history(
        self, payments: list[dict[str, Any]], refunds: Sequence[dict[str, Any]] = ()
    ) -> None:
        """What was paid and refunded before today; what the sandbox knows already stays."""
        self.ask("POST", "/history", {"payments": payments, "refunds": list(refunds)})

    def send_notices_to(self, web_address: str) -> None:
        """Every account of the sandbox that sends notices sends them to this installation."""
        for account in registry.accounts().values():
            if in_sandbox(account) and account.contract.notice != "none":
                url = f"{web_address}/webhooks/{account.name}"
                self.ask("PUT", f"/accounts/{account.name}", {"webhook_url": url})

    def lose_the_answer(
        self, account: str, marker: str, *, payment_ref: str = "", lag_seconds: int = 0
    ) -> None:
        """The next refund with this marker is made, and its answer never arrives.

        With `lag_seconds` the first lookups of the payment do not show it either.
        """
        rules: list[dict[str, Any]] = [
            {
                "account": account,
                "on": "create",
                "fault": "drop_after_commit",
                "times": 1,
                "match": {"marker": marker},
            }
        ]
        if lag_seconds:
            rules.append(
                {
                    "account": account,
                    "on": "list",
                    "fault": "list_lag",
                    "times": _LOOKUPS_THAT_LAG,
                    "match": {"payment": payment_ref},
                    "with": {"seconds": lag_seconds},
                }
            )
        self.ask("POST", "/faults", {"seed": 1, "rules": rules})


def ensure_orders(control: Control) -> int:
    """Feed every sale that is not there, and tell the sandbox of its payment; how many are new."""
    known = set(Order.objects.values_list("ref", flat=True))
    now = timezone.now()
    control.tell_history([_paid(sale, now) for sale in SALES])
    missing = [(number, sale) for number, sale in enumerate(SALES, 1) if sale.ref not in known]
    for number, sale in missing:
        feed.upsert(_snapshot(sale, number, now), by=FED_BY)
    return len(missing)


def _paid(sale: Sale, now: datetime) -> dict[str, Any]:
    return {
        "account": sale.account,
        "ref": sale.payment_ref,
        "currency": sale.currency,
        "captured_minor": sale.captured_minor,
        "created_at": (now - timedelta(days=sale.days_ago)).isoformat(),
    }


def _snapshot(sale: Sale, number: int, now: datetime) -> feed.OrderSnapshot:
    return feed.OrderSnapshot(
        ref=sale.ref,
        currency=sale.currency,
        feed_seq=1,
        facts_as_of=now,
        customer_ref=f"cus_{200 + number}",
        return_state=sale.return_state,
        fulfilment_state="delivered",
        placed_at=now - timedelta(days=sale.days_ago, hours=1),
        lines=[
            {"name": name, "quantity": count, "amount_minor": amount}
            for name, count, amount in sale.lines
        ],
        payments=(
            feed.PaymentSnapshot(
                ref=sale.payment_ref,
                provider_account=sale.account,
                state="captured",
                captured_minor=sale.captured_minor,
                captured_at=now - timedelta(days=sale.days_ago),
            ),
        ),
    )


def refund_elsewhere(control: Control, payment: Payment, amount_minor: int) -> None:
    """Somebody refunds by hand in the provider's dashboard, and the shop's feed reports it."""
    order = payment.order
    made = control.ask(
        "POST",
        "/external_refund",
        {
            "account": payment.provider_account,
            "payment": payment.ref,
            "amount_minor": amount_minor,
        },
    )
    feed.upsert(
        feed.OrderSnapshot(
            ref=order.ref,
            currency=order.currency,
            feed_seq=(order.feed_seq or 0) + 1,
            facts_as_of=timezone.now(),
            external_refunds=(
                feed.ExternalRefund(
                    payment_ref=payment.ref,
                    provider_refund_ref=made["id"],
                    amount_minor=amount_minor,
                    provider_status="succeeded",
                ),
            ),
        ),
        by=FED_BY,
    )
