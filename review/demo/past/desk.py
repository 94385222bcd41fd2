"""The desk of the past: what the ledger's one door does, on unsaved rows, at instants of choice.

Amounts are minor units. A story plays out whole before the next one on its order begins, so that
versions and balances follow the clock.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from refunds import policies
from refunds.domain import states
from refunds.models import Event, Evidence, Operation, Order, OrderMove, Payment, Person
from review.demo.past.rows import Past, Rows, Sold, Step


class Desk:
    """Moves orders and operations in memory. Deterministic: all chance comes from `chance`."""

    def __init__(self, chance: random.Random, people: dict[str, Person]) -> None:
        self.chance = chance
        self.people = people
        self.roles = {
            name: [group.name for group in person.groups.all()] for name, person in people.items()
        }
        self.rows = Rows()
        self.policy = policies.current()

    def sell(self, order: Order, payment: Payment, at: datetime) -> Sold:
        """An order that the feed brought for the first time."""
        sold = Sold(order, payment, at)
        self.rows.sold.append(sold)
        self._note(sold, "first_seen", at, "shop")
        return sold

    def bump(
        self,
        sold: Sold,
        cause: str,
        at: datetime,
        *,
        by: str,
        of: Past | None = None,
        amount_minor: int | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """The order's version moves by one, with its cause."""
        sold.order.version += 1
        operation = of.row if of else None
        self._note(sold, cause, at, by, operation, amount_minor, detail)

    def _note(
        self,
        sold: Sold,
        cause: str,
        at: datetime,
        by: str,
        operation: Operation | None = None,
        amount_minor: int | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        self.rows.moves.append(
            OrderMove(
                order=sold.order,
                version=sold.order.version,
                cause=cause,
                operation=operation,
                amount_minor=amount_minor,
                actor=by,
                detail=detail or {},
                at=at,
            )
        )

    def feed(self, sold: Sold, at: datetime, **facts: str) -> None:
        """The shop's feed brings other facts of an order (`return_state`, `customer_ref`)."""
        changes = {}
        for name, value in facts.items():
            changes[name] = [getattr(sold.order, name), value]
            setattr(sold.order, name, value)
        assert sold.order.feed_seq is not None
        sold.order.feed_seq += 1
        sold.order.facts_as_of = at
        self.bump(sold, "feed", at, by="shop", detail=changes)

    def payment_turns(self, sold: Sold, at: datetime, state: str) -> None:
        """The feed says that the payment is disputed, or that a dispute was won."""
        detail = {f"{sold.payment.ref} state": [sold.payment.state, state]}
        sold.payment.state = state
        assert sold.order.feed_seq is not None
        sold.order.feed_seq += 1
        sold.order.facts_as_of = at
        self.bump(sold, "feed", at, by="shop", detail=detail)

    def move(
        self,
        past: Past,
        event: str,
        kind: str,
        actor: str,
        at: datetime,
        detail: dict[str, Any] | None = None,
        *,
        attempt_no: int | None = None,
        evidence: Evidence | None = None,
    ) -> Event:
        """One line of the state table, as an event; what ends with it ends here."""
        row = past.row
        rule = states.rule_for(event, row.state, kind)
        moved = Event(
            operation=row,
            seq=row.version + 1,
            event=event,
            from_state=row.state,
            to_state=rule.target,
            actor_kind=kind,
            actor=actor,
            attempt_no=attempt_no,
            detail=detail or {},
            at=at,
        )
        self.rows.events.append(moved)
        if evidence is not None:
            self.rows.rests_on.append((moved, evidence))
        row.version, row.state, row.entered_at = moved.seq, rule.target, at
        if rule.target == states.UNKNOWN:
            row.unknown_since = row.unknown_since or at
        if rule.target in states.ENDED:
            row.settled_at, row.due_at, row.blocks_equivalent = at, None, False
        else:
            row.settled_at = None
        past.sold.busy_until = max(past.sold.busy_until, at)
        past.steps.append(Step(row.version, row.state, row.round, row.attempt_count))
        return moved
