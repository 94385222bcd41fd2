"""What the past is made of while it is played: unsaved rows, and what belongs together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from reconciliation.models import Case, Ruling, RulingEnd
from refunds.models import (
    Agent,
    Approval,
    Attempt,
    Event,
    Evidence,
    Operation,
    Order,
    OrderMove,
    Payment,
    Person,
    PolicyCheck,
    Proposal,
    ProviderRefund,
    Reservation,
)

SESSION: Final = "demo-past"


@dataclass(slots=True, eq=False)
class Sold:
    """One order with its one payment; `busy_until`: a story is being told about it until then."""

    order: Order
    payment: Payment
    busy_until: datetime
    operation_count: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Where an operation stood after one of its moves."""

    version: int
    state: str
    round: int
    attempt_count: int


@dataclass(slots=True, eq=False)
class Past:
    """One operation of the past, and the steps by which it came to where it stands."""

    row: Operation
    sold: Sold
    caller: Agent | Person
    steps: list[Step]
    attempt: Attempt | None = None
    reservation: Reservation | None = None
    case: Case | None = None
    # Each with the version that the operation had when it was given.
    approvals: list[tuple[int, Approval]] = field(default_factory=list)


@dataclass(slots=True)
class Rows:
    """Everything that is to be written."""

    sold: list[Sold] = field(default_factory=list)
    moves: list[OrderMove] = field(default_factory=list)
    operations: list[Past] = field(default_factory=list)
    checks: list[PolicyCheck] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    # Events that rest on a stored piece of evidence, whose number is known once it is stored.
    rests_on: list[tuple[Event, Evidence]] = field(default_factory=list)
    refunds: list[ProviderRefund] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    # Each with the event that rests on it, and how it ended.
    rulings: list[tuple[Event, Ruling, RulingEnd]] = field(default_factory=list)
    # What the provider's book is told, in the form of its control API.
    book: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a proposal says besides who and when."""

    amount_minor: int
    reason_code: str
    reason_text: str = ""
    requested_by: tuple[str, str] = ("customer", "")
    claims: dict[str, Any] = field(default_factory=dict)
