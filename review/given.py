"""Which approvals of a proposal count, and which are dead: the order has moved past them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from refunds.ledger import dead_of_waiting
from refunds.models import Approval, Operation
from refunds.queries import around
from review import facts
from review.presenters.facts import ApprovalFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The approvals of one operation, oldest first.

    `counting`: of this round and of what would be sent. `dead`: of this round, but the order
    moved past them. `ended`: those to tell of beside today's facts: the dead, or the round that
    came back.
    """

    all: list[Approval]
    counting: list[Approval]
    dead: list[Approval]
    ended: list[Approval]

    @property
    def facts(self) -> list[ApprovalFacts]:
        """Those that count, as presenters read them."""
        return [facts.approval(each) for each in self.counting]

    @property
    def dead_facts(self) -> list[ApprovalFacts]:
        return [facts.approval(each) for each in self.dead]


NOBODY: Final = Given(all=[], counting=[], dead=[], ended=[])


def given_to(ops: Sequence[Operation]) -> dict[UUID, Given]:
    """The approvals of each. Once a refund may be sent the claim judges them, and they stand."""
    if not ops:
        return {}
    ids = [op.pk for op in ops]
    found, gone = around.approvals_and_dead(ids, dead_of_waiting(ids))
    return {op.pk: _given(op, found[op.pk], gone) for op in ops}


def _given(op: Operation, found: list[Approval], gone: frozenset[int]) -> Given:
    of_round = [
        each
        for each in found
        if each.round == op.round and bytes(each.fingerprint) == bytes(op.fingerprint)
    ]
    dead = [each for each in of_round if each.pk in gone]
    return Given(
        all=found,
        counting=[each for each in of_round if each.pk not in gone],
        dead=dead,
        ended=dead or _came_back(op, found),
    )


def _came_back(op: Operation, found: list[Approval]) -> list[Approval]:
    if not op.stale_cause:
        return []
    last = [each for each in found if each.round < op.round]
    return [each for each in last if each.round == last[-1].round]
