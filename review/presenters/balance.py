"""The balance of a payment as a ruled sum: what came in, what is gone or held and why, what is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from refunds.domain.states import AUTHORIZED, AWAITING_APPROVAL, PENDING, SUBMITTING, UNKNOWN

# What a term is made of: the name in the page's address, and the states that it lists there.
SHOWN_STATES = {
    "refunded": ("succeeded", "mismatched"),
    "pending": (PENDING,),
    "unknown": (UNKNOWN,),
    "sending": (SUBMITTING, AUTHORIZED),
    "approved": (AUTHORIZED,),
}
SHOWN_WORDS = {
    "refunded": "confirmed refunds",
    "pending": "pending refunds",
    "unknown": "refunds whose outcome is unknown",
    "sending": "refunds that are being sent",
    "approved": "approved refunds that hold nothing yet",
}
_HELD = {PENDING: "pending", UNKNOWN: "unknown", SUBMITTING: "sending", AUTHORIZED: "sending"}
_HELD_WORDS = {
    "pending": "Pending",
    "unknown": "Unknown (held)",
    "sending": "Being sent",
}
# What a payment that is not captured keeps from being refunded, whatever is left of it.
_BLOCKED = {
    "disputed": "Disputed",
    "reversed": "Charged back",
    "uncaptured": "Not captured yet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFacts:
    """One payment as read; amounts in minor units of `currency`."""

    id: int
    ref: str
    account: str
    currency: str
    state: str
    halted: bool
    captured_minor: int
    refunded_minor: int
    held_minor: int

    @property
    def available_minor(self) -> int:
        return self.captured_minor - self.refunded_minor - self.held_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """What the operations of one payment in one state come to; `held`: set aside on it."""

    payment_id: int
    state: str
    held: bool
    amount_minor: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of the sum. `show` filters the refunds below; empty where none stand behind it."""

    word: str
    amount_minor: int
    show: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The whole strip of one payment. `refundable_minor` is what a new refund may be: negative
    when more went out than came in, never clamped. `waiting_count`: not sent, and not ended."""

    payment: PaymentFacts
    terms: tuple[Term, ...]
    refundable_minor: int
    approved_minor: int
    waiting_count: int
    uncertain: bool

    @property
    def over(self) -> bool:
        return self.refundable_minor < 0

    @property
    def holds_unknown(self) -> bool:
        return any(term.show == "unknown" and term.amount_minor for term in self.terms)


def sum_of(payment: PaymentFacts, commitments: Iterable[Commitment]) -> Sum:
    """The sum with every term it has; the terms always come to what is refundable."""
    mine = [each for each in commitments if each.payment_id == payment.id]
    held = dict.fromkeys(_HELD_WORDS, 0)
    for each in mine:
        if each.held:
            held[_HELD[each.state]] += each.amount_minor
    terms = [
        Term(word="Confirmed refunds", amount_minor=payment.refunded_minor, show="refunded"),
        *(
            Term(word=_HELD_WORDS[show], amount_minor=amount, show=show)
            for show, amount in held.items()
        ),
    ]
    unexplained = payment.held_minor - sum(held.values())
    if unexplained:
        terms.append(Term(word="Held, not explained", amount_minor=unexplained))
    blocked = max(payment.available_minor, 0) if payment.state in _BLOCKED else 0
    terms.append(
        Term(word=_BLOCKED.get(payment.state, "Disputed or charged back"), amount_minor=blocked)
    )
    return Sum(
        payment=payment,
        terms=tuple(terms),
        refundable_minor=payment.available_minor - blocked,
        approved_minor=sum(
            each.amount_minor for each in mine if each.state == AUTHORIZED and not each.held
        ),
        waiting_count=sum(
            each.count for each in mine if each.state in (AWAITING_APPROVAL, AUTHORIZED)
        ),
        uncertain=any(each.state in (PENDING, UNKNOWN, SUBMITTING) for each in mine),
    )


def totals(sums: Iterable[Sum]) -> dict[str, int]:
    """What is refundable on all payments together, by currency."""
    found: dict[str, int] = {}
    for each in sums:
        code = each.payment.currency
        found[code] = found.get(code, 0) + each.refundable_minor
    return found
