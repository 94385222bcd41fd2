"""What happens to an order beside us: the shop, a colleague at the provider's desk, a bank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from refunds.models import Operation, Payment
from tests import build
from tests.simulation.provider import SandboxHere

ORDERS = ("S-1", "S-2")
# Here nobody would ever tell that the money came back.
_DEAF = frozenset({"plain-blind", "plain-hooks", "plain-stored500"})


@dataclass
class Outsiders:
    """Each act is the truth at the provider at once; we may hear of it, or not."""

    provider: SandboxHere
    dice: Random
    # The payments that somebody took from: once each, so that all still fits.
    taken_from: set[int] = field(default_factory=set)

    def acts(self) -> dict[str, Callable[[], object]]:
        return {
            "feed": self.feed,
            "stranger": self.stranger,
            "shop_refund": self.shop_refund,
            "sent_back": self.sent_back,
        }

    def feed(self) -> object:
        """The shop says something new of an order: approvals on it go stale."""
        ref = self.dice.choice(ORDERS)
        state = self.dice.choice(("received", "expected", "none"))
        return build.order(
            ref, account=self._payment(ref).provider_account, return_state=state
        ).version

    def stranger(self) -> object:
        """Somebody at the provider's desk refunds an equal amount, and tells nobody."""
        ids = sorted(Operation.objects.values_list("pk", flat=True))
        operation = Operation.objects.select_related("payment").get(pk=self.dice.choice(ids))
        return self._taken(operation.payment, operation.amount_minor)

    def shop_refund(self) -> object:
        """The shop's own system refunds all that nobody has set aside, and tells us so."""
        ref = self.dice.choice(ORDERS)
        payment = self._payment(ref)
        left = payment.captured_minor - payment.refunded_minor - payment.held_minor
        made = self._taken(payment, left) if left > 0 else None
        if not isinstance(made, dict):
            return made
        return build.external_refund(ref, left, ref=made["id"]).version

    def sent_back(self) -> object:
        """The bank sends back what the provider had paid: the refund failed after all."""
        paid = [
            refund["id"]
            for account in sorted(set(Payment.objects.values_list("provider_account", flat=True)))
            if account not in _DEAF
            for refund in self.provider.refunds(account)
            if refund["status"] == "succeeded"
        ]
        if not paid:
            return None
        chosen = self.dice.choice(paid)
        self.provider.control("POST", f"/refunds/{chosen}/status", {"to": "failed"})
        return chosen

    def _payment(self, ref: str) -> Payment:
        return Payment.objects.get(order__ref=ref)

    def _taken(self, payment: Payment, amount_minor: int) -> dict[str, Any] | str:
        if payment.pk in self.taken_from:
            return "was here"
        told = {
            "account": payment.provider_account,
            "payment": payment.ref,
            "amount_minor": amount_minor,
        }
        try:
            made: dict[str, Any] = self.provider.control("POST", "/external_refund", told)
        except AssertionError:
            return "no room"
        self.taken_from.add(payment.pk)
        return made
