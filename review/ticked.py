"""What was ticked to be approved together: read from the form, judged, and drawn for review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from refunds.domain.errors import Refusal
from refunds.models import Operation
from refunds.queries import queue
from review import facts, intent, proposal
from review.access import Viewer
from review.given import given_to
from review.intent import Hidden
from review.presenters import approval, waiting
from review.presenters.facts import OperationFacts
from review.presenters.words import amounts, count_of
from review.queue_page import TICKED_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One ticked proposal with the versions that were on the screen.

    `fingerprint` (hex) and `digest` are those of the review page; empty when it was ticked in
    the list.
    """

    id: UUID
    version: int
    order_version: int
    fingerprint: str = ""
    digest: str = ""

    @property
    def text(self) -> str:
        """As a form posts it; `read` reads it back."""
        return f"{self.id}.{self.version}.{self.order_version}.{self.fingerprint}.{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One proposal of the review page; `tick` is what its form posts."""

    slip: proposal.Slip
    tick: Tick
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A ticked proposal that is not offered, and why; `moved`: it changed since it was ticked."""

    op: Operation
    facts: OperationFacts
    why: str
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What the review page lists."""

    items: list[Item]
    left_out: list[LeftOut]

    @property
    def moved_count(self) -> int:
        return sum(each.moved for each in self.left_out)

    @property
    def total(self) -> str:
        """ "57.75 EUR, 6 800 JPY"."""
        sums: dict[str, int] = {}
        for item in self.items:
            code = item.slip.facts.currency
            sums[code] = sums.get(code, 0) + item.slip.facts.amount_minor
        return amounts(sums)

    @property
    def count_words(self) -> str:
        return count_of(len(self.items), "refund")

    def drawn(self) -> Hidden:
        """Hidden values of the one form for all; its version is the number of its items."""
        ticks = [item.tick for item in self.items]
        return intent.drawn(version=len(ticks), shown_digest=digest(ticks))


def digest(ticks: Sequence[Tick]) -> str:
    """Hex digest of the list as it was drawn."""
    return intent.digest_of([tick.text for tick in ticks])


def read(texts: Sequence[str], *, without: str = "") -> list[Tick]:
    """The ticked of a form, each once, in its order. Raises Refusal (422) for none, too many or
    unreadable ones."""
    ticks = {tick.id: tick for tick in map(_tick, texts)}
    kept = [tick for tick in ticks.values() if str(tick.id) != without]
    if not kept:
        raise Refusal(
            "nothing_ticked",
            "Nothing is ticked. Nothing was recorded.",
            what_to_do="Tick the proposals that you want to review together.",
        )
    if len(kept) > TICKED_MAX:
        raise Refusal(
            "too_many_ticked",
            f"You ticked {len(kept)}; at most {TICKED_MAX} can be approved together."
            " Nothing was recorded.",
            what_to_do=f"Take {len(kept) - TICKED_MAX} of them out.",
        )
    return kept


def _tick(text: str) -> Tick:
    parts = text.split(".")
    try:
        if len(parts) not in (3, 5):
            raise ValueError(text)
        return Tick(
            id=UUID(parts[0]),
            version=int(parts[1]),
            order_version=int(parts[2]),
            fingerprint=parts[3] if len(parts) == 5 else "",
            digest=parts[4] if len(parts) == 5 else "",
        )
    except ValueError as error:
        raise Refusal(
            "form_incomplete",
            "A ticked line could not be read: it needs an id and its versions."
            " Nothing was recorded.",
            what_to_do="Open the list again and tick what it shows.",
        ) from error


def review(ticks: Sequence[Tick], who: Viewer) -> Review:
    """What can be approved together today, and what cannot; as many queries for 20 as for one.

    Raises Refusal mixed_proposers (422) where agents' and people's proposals are ticked.
    """
    found = queue.these(tick.id for tick in ticks)
    known = [(tick, found[tick.id]) for tick in ticks if tick.id in found]
    _require_one_kind([op for _, op in known])
    given = given_to([op for _, op in known])
    wanted, left_out = [], []
    for tick, op in known:
        plain = facts.operation(op)
        moved = _moved(tick, op)
        reader = proposal.reader(op, who, given[op.pk])
        why = approval.why_not_together(plain, reader, who.clock.now) or moved
        if why:
            left_out.append(LeftOut(op=op, facts=plain, why=why, moved=bool(moved)))
        else:
            wanted.append(op)
    beside = queue.beside(op.pk for op in wanted)
    items = []
    for slip in proposal.slips(wanted, who):
        if slip.decision.may_approve:
            items.append(_item(slip, beside[slip.op.pk].earlier, who))
        else:
            why = slip.decision.why_not
            left_out.append(LeftOut(op=slip.op, facts=slip.facts, why=why, moved=False))
    return Review(items=items, left_out=left_out)


def _moved(tick: Tick, op: Operation) -> str:
    """What changed since the line was ticked; empty where nothing did."""
    if tick.version != op.version:
        return "It changed while you were selecting."
    if tick.order_version != op.order.version:
        return (
            f"Order {op.order.ref} changed from version {tick.order_version} to"
            f" {op.order.version} while you were selecting."
        )
    return ""


def _require_one_kind(ops: Sequence[Operation]) -> None:
    of_agents = sum(op.agent_id is not None for op in ops)
    of_people = len(ops) - of_agents
    if of_agents and of_people:
        raise Refusal(
            "mixed_proposers",
            f"You ticked {of_agents} that agents proposed and {of_people} that people proposed."
            " Nothing was recorded.",
            what_to_do="Tick only those of agents, or only those of people.",
        )


def _item(slip: proposal.Slip, earlier: int, who: Viewer) -> Item:
    return Item(
        slip=slip,
        tick=Tick(
            id=slip.op.pk,
            version=slip.op.version,
            order_version=slip.facts.order_version,
            fingerprint=slip.fingerprint,
            digest=slip.shown_digest,
        ),
        notes=waiting.approval_notes(
            slip.facts, slip.given, who.clock, earlier=earlier, differing=slip.differing
        ),
    )


def outcomes(stored: dict[str, Any]) -> list[tuple[Operation, OperationFacts, dict[str, Any]]]:
    """The stored press of a list, read back: each operation as it is now, with its outcome."""
    asked = [UUID(key) for key in stored["asked"]]
    found = queue.these(asked)
    return [
        (found[pk], facts.operation(found[pk]), stored["items"].get(str(pk), {}))
        for pk in asked
        if pk in found
    ]
