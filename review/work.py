"""My work: which lists a reader has, and the lines of each. One list that fails spoils no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError
from django.urls import reverse

from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.roles import LEAD, MANAGER
from refunds.models import Operation
from refunds.queries import around, queue
from review import case_reads, facts, proposal, roles
from review.access import Viewer
from review.presenters import approval, rows, waiting
from review.presenters.facts import OperationFacts
from review.presenters.sentences import stale_words
from review.presenters.words import actor_word, state_word

logger = logging.getLogger(__name__)

BLOCK_ROWS = 7
# Own proposals and returns are shown this far back.
OWN_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a list. `key` and `version` are what a poll compares; `late` words are loud."""

    key: str
    version: int
    state: str
    flag: str = ""
    amount_minor: int
    currency: str
    order_ref: str
    small: str
    url: str
    why: str
    notes: Sequence[str] = ()
    by: str
    by_small: str = ""
    age: str
    left: str
    late: bool = False
    handled: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One list with its heading; `failed` where it could not be read."""

    name: str
    title: str
    about: str
    url: str
    all_words: str
    lines: list[Line] = field(default_factory=list)
    more: bool = False
    failed: bool = False

    @property
    def count(self) -> str:
        """ "4", or "7+" where more wait than are shown."""
        return f"{len(self.lines)}+" if self.more else str(len(self.lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A list before it is read: who has it, and what reads it (one line more than is shown)."""

    block: Callable[..., Block]
    wanted: Callable[[Viewer], bool]
    read: Callable[[Viewer], list[Line]]


def blocks(who: Viewer) -> list[Block]:
    """The lists of this reader, in the order of the page; each reads for itself."""
    return [_read(plan, who) for plan in _plans() if plan.wanted(who)]


def _read(plan: _Plan, who: Viewer) -> Block:
    try:
        lines = plan.read(who)
    except DatabaseError:
        logger.exception("a list of the first page could not be read")
        return plan.block(failed=True)
    return plan.block(lines=lines[:BLOCK_ROWS], more=len(lines) > BLOCK_ROWS)


def _decides(who: Viewer) -> bool:
    return who.may(roles.APPROVE)


def _asks(who: Viewer) -> bool:
    return who.may(roles.PROPOSE) and not who.may(roles.SEE)


def _plans() -> list[_Plan]:
    unknown, approvals = reverse("unknown"), reverse("approvals")
    return [
        _Plan(
            block=_named("mine", "Waiting for my approval", "", approvals, "All that wait"),
            wanted=_decides,
            read=_to_approve,
        ),
        _Plan(
            block=_named(
                "held", "Cases I hold", "By due time", f"{unknown}?tab=person", "Unknown queue"
            ),
            wanted=lambda who: who.may(roles.CLAIM),
            read=lambda who: _cases(who, case_reads.open_cases().filter(owner=who.person)),
        ),
        _Plan(
            block=_named(
                "cases", "Needs a person", "Open cases, by due time", f"{unknown}?tab=person", "All"
            ),
            wanted=lambda who: who.may(roles.CLAIM),
            read=lambda who: _cases(who, case_reads.open_cases().exclude(owner=who.person)),
        ),
        _Plan(
            block=_named(
                "back",
                "Returned to me",
                "Approved by me and stale now, or asked for by me and refused; the newest first",
                f"{approvals}?tab=stale",
                "All stale",
            ),
            wanted=lambda who: _decides(who) or (who.may(roles.PROPOSE) and who.may(roles.SEE)),
            read=_returned,
        ),
        _Plan(
            block=_named(
                "oldest", "Oldest unresolved", "By how long it is unknown", unknown, "Unknown queue"
            ),
            wanted=lambda who: MANAGER in who.roles,
            read=_oldest,
        ),
        _Plan(
            block=_named(
                "twice", "Paid twice", "Open cases, by due time", f"{unknown}?tab=person", "Cases"
            ),
            wanted=lambda who: MANAGER in who.roles,
            read=lambda who: _cases(
                who, case_reads.open_cases().filter(reasons__contains=["duplicate"])
            ),
        ),
        _Plan(
            block=_named(
                "asked",
                "What I asked for",
                f"The last {OWN_DAYS} days, the newest first",
                reverse("status"),
                "Status of an order",
            ),
            wanted=_asks,
            read=_asked,
        ),
    ]


def _named(name: str, title: str, about: str, url: str, all_words: str) -> Callable[..., Block]:
    def block(**read: Any) -> Block:
        return Block(name=name, title=title, about=about, url=url, all_words=all_words, **read)

    return block


def _to_approve(who: Viewer) -> list[Line]:
    found = list(
        queue.waiting_for(who.person, only_with_finance=LEAD not in who.roles)[: BLOCK_ROWS + 1]
    )
    given = around.approvals_of([op.pk for op in found])
    lines = []
    for op in found:
        plain = facts.operation(op)
        counting = proposal.of_round(op, given[op.pk])
        lines.append(
            _line(
                op,
                plain,
                who,
                why=_reason(plain),
                notes=waiting.approval_notes(plain, counting, who.clock),
                by_small=approval.policy_word(plain, counting),
            )
        )
    return lines


def _returned(who: Viewer) -> list[Line]:
    since = who.clock.now - timedelta(days=OWN_DAYS)
    found = list(queue.returned_to(who.person, since)[: BLOCK_ROWS + 1])
    last = queue.last_events([op.pk for op in found])
    lines = []
    for op in found:
        plain, event = facts.operation(op), last[op.pk]
        if op.stale_cause:
            why = f"Your approval no longer applies: {stale_words(op.stale_cause)}"
        else:
            said = str(event.detail.get("reason") or "a policy check refused it")
            why = f"{state_word(op.state).capitalize()} by {actor_word(event.actor)}: {said}"
        lines.append(
            _line(op, plain, who, why=why, by_small=f"since {who.clock.minutes(event.at)}")
        )
    return lines


def _oldest(who: Viewer) -> list[Line]:
    lines = []
    for op in queue.oldest_uncertain()[: BLOCK_ROWS + 1]:
        plain = facts.operation(op)
        bar = rows.target_bar(plain, who.clock)
        lines.append(
            _line(op, plain, who, why=_reason(plain), age=bar.age, left=bar.due, late=bar.late)
        )
    return lines


def _asked(who: Viewer) -> list[Line]:
    since = who.clock.now - timedelta(days=OWN_DAYS)
    found = queue.asked_by(who.person, since)[: BLOCK_ROWS + 1]
    return [
        _line(
            op,
            plain,
            who,
            why=_reason(plain),
            url=reverse("order_status", args=[plain.order_ref]),
        )
        for op in found
        if (plain := facts.operation(op))
    ]


def _reason(plain: OperationFacts) -> str:
    words = state_word(plain.reason_code).capitalize()
    return f"{words}: {plain.reason_text}" if plain.reason_text else words


def _line(op: Operation, plain: OperationFacts, who: Viewer, **told: Any) -> Line:
    in_queue = plain.state == "awaiting_approval"
    page = reverse("operation", args=[op.pk])
    values: dict[str, Any] = {
        "key": op.pk.hex,
        "version": op.version,
        "state": plain.state,
        "flag": "stale" if plain.stale_cause and in_queue else "",
        "amount_minor": plain.amount_minor,
        "currency": plain.currency,
        "order_ref": plain.order_ref,
        "small": f"op …{str(op.pk)[-6:]}",
        "url": f"{reverse('approvals')}?open={op.pk}#row-{op.pk}" if in_queue else page,
        "by": plain.proposer,
        "age": who.clock.age(op.created_at),
        "left": waiting.left_words(plain, who.clock),
        "late": waiting.is_expiring(plain, who.clock),
    }
    return Line(**(values | told))


def _cases(who: Viewer, found: Any) -> list[Line]:
    return [_case_line(case, who) for case in found[: BLOCK_ROWS + 1]]


def _case_line(case: Case, who: Viewer) -> Line:
    told = facts.case(case)
    op = case.operation
    plain = facts.operation(op) if op else None
    bar = rows.case_bar(told, plain, who.clock)
    payment = case.payment
    return Line(
        key=f"case-{case.pk}",
        version=case.owner_id or 0,
        state=op.state if op else "",
        flag="" if op else "payment",
        amount_minor=op.amount_minor if op else payment.captured_minor,
        currency=payment.currency,
        order_ref=payment.order.ref,
        small=f"op …{str(op.pk)[-6:]}" if op else payment.ref,
        url=reverse("operation", args=[op.pk])
        if op
        else reverse("order", args=[payment.order.ref]),
        why=told.because,
        notes=[", ".join(state_word(reason) for reason in told.reasons)],
        by=told.owner or "nobody",
        age=bar.age,
        left=bar.due,
        late=bar.late,
    )


# What became of a line that is on somebody's screen


def handled(places: Sequence[str], who: Viewer) -> dict[str, str]:
    """Per line that moved ("mine-<key>"): who handled it and when. What is nobody's is left out."""
    keys = {place: place.partition("-")[2] for place in places}
    words = _handled_cases([key for key in keys.values() if key.startswith("case-")], who)
    words |= _handled_operations([key for key in keys.values() if len(key) == 32], who)
    return {place: words[key] for place, key in keys.items() if key in words}


def _handled_operations(keys: Sequence[str], who: Viewer) -> dict[str, str]:
    ids = [UUID(key) for key in keys]
    if not ids:
        return {}
    words, given = {}, around.approvals_of(ids)
    for pk, event in queue.last_events(ids).items():
        newest = given[pk][-1] if given[pk] else None
        by, at = actor_word(event.actor), event.at
        if newest is not None and event.actor_kind not in (states.APPROVER, states.CALLER):
            by, at = newest.approver.username, newest.at
        words[pk.hex] = f"Handled by {by} at {who.clock.minutes(at)}"
    return words


def _handled_cases(keys: Sequence[str], who: Viewer) -> dict[str, str]:
    ids = [int(key.removeprefix("case-")) for key in keys if key.removeprefix("case-").isdigit()]
    words = {}
    for case in Case.objects.select_related("owner").filter(pk__in=ids) if ids else ():
        if case.closed_at is not None:
            said = f"Closed at {who.clock.minutes(case.closed_at)}: {case.closed_because}"
        else:
            said = f"{case.owner.username if case.owner else 'Nobody'} has it now"
        words[f"case-{case.pk}"] = said
    return words
