"""The lines of the approvals queue, built for a whole page at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from refunds.domain import states
from refunds.models import Operation
from refunds.queries import queue
from review import facts, proposal
from review.access import Viewer
from review.given import given_to
from review.presenters import approval, changes, waiting
from review.presenters.facts import ApprovalFacts, OperationFacts
from review.shown import shown_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One proposal of a list. `tickable`: may be approved together with others by this reader.
    `stale`: it came back, or the order moved past an approval that it has.

    `seen_version` is the order version that the proposal was judged on; `handled` says what
    became of it where it no longer waits.
    """

    op: Operation
    facts: OperationFacts
    given: list[ApprovalFacts]
    stale: bool
    notes: list[str]
    policy: str
    age: str
    left: str
    expiring: bool
    seen_version: int
    handled: str
    tickable: bool
    ticked: bool
    is_open: bool

    @property
    def gone(self) -> bool:
        return self.facts.state != states.AWAITING_APPROVAL

    @property
    def shown(self) -> str:
        """What a poll must know of a row that was drawn anew."""
        return shown_text([(self.op.pk, self.op.version)])

    @property
    def key(self) -> str:
        """What a tick posts: the id and the versions that were on the screen."""
        return f"{self.op.pk}.{self.op.version}.{self.facts.order_version}"


def rows(
    ops: Sequence[Operation],
    who: Viewer,
    *,
    opened: UUID | None = None,
    ticked: Collection[UUID] = (),
) -> list[Row]:
    """The rows of a page, in its order; as many queries for fifty as for one."""
    ids = [op.pk for op in ops]
    given = given_to(ops)
    beside = queue.beside(ids)
    ended = [op.pk for op in ops if op.state in states.ENDED]
    last = queue.last_events(ended) if ended else {}
    made = []
    for op in ops:
        plain = facts.operation(op)
        counting, dead = given[op.pk].facts, given[op.pk].dead_facts
        event = last.get(op.pk)
        reader = proposal.reader(op, who, given[op.pk])
        made.append(
            Row(
                op=op,
                facts=plain,
                given=counting,
                stale=waiting.is_stale(plain) or bool(dead),
                notes=waiting.approval_notes(
                    plain,
                    counting,
                    who.clock,
                    dead=dead,
                    own=approval.own_words(plain, reader),
                    earlier=beside[op.pk].earlier,
                    differing=changes.differing(proposal.claim_rows(op)),
                ),
                policy=approval.policy_word(plain, counting),
                age=who.clock.age(op.created_at),
                left=waiting.time_left(plain, who.clock),
                expiring=waiting.is_expiring(plain, who.clock),
                seen_version=beside[op.pk].seen_version or plain.order_version,
                handled=waiting.handled_words(
                    plain, counting, facts.event(event) if event else None, who.clock
                ),
                tickable=not approval.why_not_together(plain, reader, who.clock.now),
                ticked=op.pk in ticked,
                is_open=op.pk == opened,
            )
        )
    return made
