"""The one door for state: only this package moves an operation, an order's version or money held."""

from refunds.ledger.answer import Recorded, record_answer
from refunds.ledger.claim import Claim, claim
from refunds.ledger.clock import database_now
from refunds.ledger.door import (
    DISPATCHER,
    POLICY,
    RECONCILER,
    Actor,
    Locked,
    lock,
    transition,
)
from refunds.ledger.facts import accepted_now, decided_under, held_to
from refunds.ledger.lapse import back_to_waiting, expire, lapse
from refunds.ledger.orders import book, bump, hold_again, mark_frozen, release
from refunds.ledger.resend import resubmit
from refunds.ledger.siblings import (
    Sibling,
    dead_of_waiting,
    moved_unexplained,
    siblings_of,
)

__all__ = [
    "DISPATCHER",
    "POLICY",
    "RECONCILER",
    "Actor",
    "Claim",
    "Locked",
    "Recorded",
    "Sibling",
    "accepted_now",
    "back_to_waiting",
    "book",
    "bump",
    "claim",
    "database_now",
    "dead_of_waiting",
    "decided_under",
    "expire",
    "held_to",
    "hold_again",
    "lapse",
    "lock",
    "mark_frozen",
    "moved_unexplained",
    "record_answer",
    "release",
    "resubmit",
    "siblings_of",
    "transition",
]
