"""The one door for state: only this package moves an operation, an order's version or money held."""

from refunds.ledger.answer import Recorded, record_answer
from refunds.ledger.claim import Claim, claim
from refunds.ledger.door import (
    DISPATCHER,
    POLICY,
    RECONCILER,
    Actor,
    Locked,
    lock,
    transition,
)
from refunds.ledger.orders import book, bump, hold_again, release

__all__ = [
    "DISPATCHER",
    "POLICY",
    "RECONCILER",
    "Actor",
    "Claim",
    "Locked",
    "Recorded",
    "book",
    "bump",
    "claim",
    "hold_again",
    "lock",
    "record_answer",
    "release",
    "transition",
]
