"""The lines of the approvals queue, built for a whole page at once.

Everything that a line says is made here and flat, so that its template only places words: a page
has fifty of them, and each choice in a template costs as much as ten of them here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from django.utils.text import Truncator

from refunds.domain import states
from refunds.domain.money import display
from refunds.models import Operation
from refunds.queries import queue
from review import addresses, facts, proposal
from review.access import Viewer
from review.given import NOBODY, Given, given_to
from review.presenters import approval, changes, waiting
from review.presenters.facts import EventFacts, OperationFacts
from review.presenters.words import short, state_word
from review.shown import shown_text

_REASON_MAX = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One proposal of a list. `tickable`: may be approved together with others by this reader.
    `stale`: it waits, and it came back or the order moved past an approval that it has.

    `gone`: it no longer waits, and the first of `notes` says what became of it. `look` is its class.
    `versions`: that of the order that it was judged on, and today's where it is another.
    """

    id: str
    short: str
    url: str
    state: str
    look: str
    gone: bool
    stale: bool
    stale_cause: str
    amount_minor: int
    available_minor: int
    currency: str
    amount: str
    order_ref: str
    order_url: str
    versions: str
    why: str
    notes: list[str]
    proposer: str
    by: str
    policy: str
    age: str
    left: str
    expiring: bool
    key: str
    shown: str
    tickable: bool
    ticked: bool
    is_open: bool


def rows(
    ops: Sequence[Operation],
    who: Viewer,
    *,
    opened: UUID | None = None,
    ticked: Collection[UUID] = (),
    archive: bool = False,
) -> list[Row]:
    """The rows of a page, in its order; as many queries for fifty as for one.

    `archive`: a list of what ended, too, where a row that no longer waits has not just gone.
    """
    if not ops:
        return []
    ids = [op.pk for op in ops]
    # Asked for once: an address takes as long to make as half of the rest of a line.
    order_url = addresses.of_orders()
    first = reverse("operation", kwargs={"operation_id": ids[0]})
    before, _, after = first.partition(str(ids[0]))
    # Who needs one person only is authorised by the first yes: while it waits it has none.
    given = given_to([op for op in ops if op.state != states.AWAITING_APPROVAL or op.quorum > 1])
    beside = queue.beside(ids)
    ended = [op.pk for op in ops if op.state in states.ENDED]
    last = queue.last_events(ended) if ended else {}
    return [
        _row(
            op,
            who,
            given.get(op.pk, NOBODY),
            beside[op.pk],
            facts.event(last[op.pk]) if op.pk in last else None,
            url=f"{before}{op.pk}{after}",
            order_url=order_url(op.order.ref),
            is_open=op.pk == opened,
            ticked=op.pk in ticked,
            archive=archive,
        )
        for op in ops
    ]


def _row(
    op: Operation,
    who: Viewer,
    given: Given,
    beside: queue.Beside,
    last: EventFacts | None,
    *,
    url: str,
    order_url: str,
    is_open: bool,
    ticked: bool,
    archive: bool,
) -> Row:
    plain = facts.operation(op)
    counting, dead = given.facts, given.dead_facts
    reader = proposal.reader(op, who, given)
    gone = op.state != states.AWAITING_APPROVAL
    notes = waiting.approval_notes(
        plain,
        counting,
        who.clock,
        dead=dead,
        own=approval.own_words(plain, reader),
        earlier=beside.earlier,
        differing=changes.differing(proposal.claim_rows(op)),
    )
    if gone:
        handled = waiting.handled_words(plain, counting, last, who.clock)
        notes.insert(0, f"{handled}." if archive else f"{handled}. It stays here until you reload.")
    look = ("open" if is_open else "") + (" gone" if gone and not archive else "")
    return Row(
        id=str(op.pk),
        short=short(op.pk),
        url=url,
        state=op.state,
        look=look,
        gone=gone,
        stale=not gone and (waiting.is_stale(plain) or bool(dead)),
        stale_cause=op.stale_cause,
        amount_minor=op.amount_minor,
        available_minor=plain.available_minor,
        currency=op.currency,
        amount=display(op.amount_minor, op.currency),
        order_ref=plain.order_ref,
        order_url=order_url,
        versions=_versions(plain, beside.seen_version, gone=gone),
        why=_why(plain),
        notes=notes,
        proposer=plain.proposer,
        by=_by(plain) if op.agent_id else "a person",
        policy=approval.policy_word(plain, counting),
        age=who.clock.age(op.created_at),
        left=waiting.left_words(plain, who.clock),
        expiring=waiting.is_expiring(plain, who.clock),
        # What a tick posts: the id and the versions that were on the screen.
        key=f"{op.pk}.{op.version}.{plain.order_version}",
        # What a poll must know of a row that was drawn anew.
        shown=shown_text([(op.pk, op.version)]),
        tickable=not approval.why_not_together(plain, reader, who.clock.now),
        ticked=ticked,
        is_open=is_open,
    )


def _versions(op: OperationFacts, seen: int | None, *, gone: bool) -> str:
    if gone or seen is None or seen == op.order_version:
        return f"v{seen or op.order_version}"
    return f"v{seen}, now v{op.order_version}"


def _why(op: OperationFacts) -> str:
    """The reason, and what was said about it, cut where it is long."""
    words = state_word(op.reason_code)
    words = words[:1].upper() + words[1:]
    if not op.reason_text:
        return words
    cut = len(op.reason_text) > _REASON_MAX
    said = Truncator(op.reason_text).chars(_REASON_MAX) if cut else op.reason_text
    return f"{words}: {said}"


def _by(op: OperationFacts) -> str:
    """Which run and step of the agent asked, or whose agent it is."""
    step = f"step {op.step_ref}" if op.step_ref else ""
    return ", ".join(filter(None, (op.run_ref, step))) or f"agent of {op.agent_owner}"
