"""What recording a choice will do, worked out before anybody presses. Pure.

The page prints it, the ruling keeps it, and a test compares it with what then happened.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from reconciliation.choices import (
    ATTACH,
    CORRECT,
    EVENTS,
    HAPPENED,
    NOT_HAPPENED,
    NOT_OURS,
    left_open,
)
from refunds.domain import states

_TARGETS = {rule.event: rule.target for rule in states.RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What stands on the payment and its order now; minor units of the payment's currency.

    `held_here` is what this operation holds, `booked_here` what is counted already of the refund
    that the choice names.
    """

    state: str
    captured_minor: int
    refunded_minor: int
    held_minor: int
    held_here_minor: int
    booked_here_minor: int
    order_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The state and the books afterwards, and what else follows. `tells` are those who hear of
    it, as words."""

    choice: str
    state: str
    refunded_minor: int
    held_minor: int
    available_minor: int
    order_version: int
    closes: bool
    freezes: bool
    owes_minor: int
    tells: tuple[str, ...]

    def stored(self) -> dict[str, Any]:
        """The JSON form that is kept with the ruling."""
        return {**asdict(self), "tells": list(self.tells)}


def plan(
    choice: str,
    books: Books,
    reasons: tuple[str, ...],
    *,
    asked_minor: int = 0,
    amount_minor: int | None = None,
    frozen: bool = False,
) -> Plan:
    """`amount_minor` is what the choice counts as gone, where it counts anything."""
    refunded, held, version = books.refunded_minor, books.held_minor, books.order_version
    state, owes = books.state, 0
    if choice in EVENTS:
        held -= books.held_here_minor
        state = _TARGETS[EVENTS[choice]]
    if choice == NOT_HAPPENED:
        owes = asked_minor
        version += bool(books.held_here_minor)
    elif choice in EVENTS and amount_minor is not None:
        refunded += amount_minor - books.booked_here_minor
        # Held for refunded at the same amount leaves what is available as it was.
        version += choice != HAPPENED
    if choice == CORRECT and amount_minor is not None:
        owes = max(0, asked_minor - amount_minor)
    freezes = choice == NOT_OURS and not frozen
    version += freezes
    return Plan(
        choice=choice,
        state=state,
        refunded_minor=refunded,
        held_minor=held,
        available_minor=books.captured_minor - refunded - held,
        order_version=version,
        closes=not left_open(reasons, choice),
        freezes=freezes,
        owes_minor=owes,
        tells=_tells(choice),
    )


def _tells(choice: str) -> tuple[str, ...]:
    if choice in EVENTS:
        return ("whoever asked for it", "the agent that proposed it", "the rep’s page")
    return ("the operation it belongs to",) if choice == ATTACH else ()
