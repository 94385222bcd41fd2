"""What a provider might send, from a seed: true notices, and every way in which they go wrong."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from tests.notices.telling import (
    as_shown,
    plain_body,
    plain_refund,
    secret_of,
    signature,
    stripe_body,
)

# How often each kind is sent, of a hundred deliveries.
KINDS = {
    "new": 34,
    "again": 16,
    "forged": 10,
    "stale": 6,
    "future": 4,
    "other_account": 5,
    "other_mode": 4,
    "amount_differs": 5,
    "status_differs": 5,
    "no_amount": 3,
    "other_content": 3,
    "someone_elses": 3,
    "unknown_payment": 2,
}
REFUSED = frozenset({"forged", "stale", "future", "other_account"})


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one refund at the provider, as its notice shows it."""

    account: str
    event_id: str
    payment_ref: str
    currency: str
    refund: dict[str, Any]

    def body(self, **changed: Any) -> bytes:
        """The notice's bytes; a field changed to None is left out."""
        shown = as_shown(self.refund, self.payment_ref, self.currency)
        fields = {name: value for name, value in (shown | changed).items() if value is not None}
        if not self.account.startswith("stripe"):
            return plain_body(self.event_id, fields)
        return stripe_body(self.event_id, _as_stripe(fields))


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request at the door. `event` is what it is about, true or not."""

    kind: str
    account: str
    event_id: str
    payment_ref: str
    body: bytes
    header: str


@dataclass
class Sender:
    """Draws deliveries; what is true is said by the events it was given."""

    draw: random.Random
    fresh: list[Event] = field(default_factory=list)
    sent: list[Event] = field(default_factory=list)
    # Accounts whose provider cannot be asked: there a signed lie would be the provider's own.
    proofs: frozenset[str] = frozenset()
    number: int = 0

    def next(self) -> Delivery:
        kinds, weights = list(KINDS), list(KINDS.values())
        while True:
            kind = self.draw.choices(kinds, weights)[0]
            made = self._made(kind)
            if made is not None:
                return made

    def next_new(self) -> Delivery | None:
        """One that was not delivered yet; None once all were."""
        return self._made("new") if self.fresh else None

    def _made(self, kind: str) -> Delivery | None:
        self.number += 1
        if kind == "new":
            if not self.fresh:
                return None
            event = self.fresh.pop(self.draw.randrange(len(self.fresh)))
            self.sent.append(event)
            return self._signed(kind, event, event.body())
        if kind == "unknown_payment":
            refund = plain_refund(id=f"rf_x{self.number}", payment=f"pi_x{self.number}")
            body = plain_body(f"evt_x{self.number}", refund)
            lone = Event("plain-main", f"evt_x{self.number}", refund["payment"], "USD", refund)
            return self._signed(kind, lone, body)
        pool = self.sent if kind in ("again", "other_content") else [*self.sent, *self.fresh]
        if not pool:
            return None
        return self._twisted(kind, self.draw.choice(pool))

    def _twisted(self, kind: str, event: Event) -> Delivery | None:
        lie = "failed" if event.refund["status"] == "succeeded" else "succeeded"
        apart = Event(
            event.account,
            f"evt_{kind}_{self.number}",
            event.payment_ref,
            event.currency,
            event.refund,
        )
        if kind == "again":
            return self._signed(kind, event, event.body())
        if kind == "forged":
            return self._signed(kind, apart, apart.body(status=lie), secret="not-the-secret-of-it")
        if kind in ("stale", "future"):
            away = self.draw.randrange(310, 300_000) * (1 if kind == "future" else -1)
            return self._signed(kind, apart, apart.body(status=lie), seconds=away)
        if kind == "other_account":
            other = "plain-hooks" if event.account != "plain-hooks" else "plain-main"
            return self._signed(kind, apart, apart.body(), secret=secret_of(other))
        if kind == "other_mode":
            if not event.account.startswith("stripe"):
                return None
            body = json.dumps(json.loads(apart.body(status=lie)) | {"livemode": False})
            return self._signed(kind, apart, body.encode())
        if event.account in self.proofs or kind == "someone_elses":
            return self._of_a_stranger(kind, apart) if kind == "someone_elses" else None
        if kind == "other_content":
            return self._signed(kind, event, event.body(status=lie, created_at=None))
        changed: dict[str, Any] = {
            "amount_differs": {"amount_minor": event.refund["amount_minor"] + 100},
            "status_differs": {"status": lie},
            "no_amount": {"amount_minor": None},
        }[kind]
        return self._signed(kind, apart, apart.body(**changed))

    def _of_a_stranger(self, kind: str, event: Event) -> Delivery | None:
        """A refund on a payment of ours that the provider does not have; nobody can confirm it."""
        if event.account in self.proofs:
            return None
        body = event.body(id=f"rf_s{self.number}", aftersend_operation=None)
        return self._signed(kind, event, body)

    def _signed(
        self, kind: str, event: Event, body: bytes, *, secret: str = "", seconds: float = 0
    ) -> Delivery:
        header = signature(body, secret or secret_of(event.account), at=time.time() + seconds)
        return Delivery(kind, event.account, event.event_id, event.payment_ref, body, header)


def _as_stripe(fields: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "id": fields["id"],
        "object": "refund",
        "payment_intent": fields["payment"],
        "currency": fields["currency"].lower(),
        "status": fields["status"],
        "metadata": {},
    }
    if "amount_minor" in fields:
        shown["amount"] = fields["amount_minor"]
    if fields.get("aftersend_operation"):
        shown["metadata"] = {"aftersend_operation": fields["aftersend_operation"]}
    return shown
