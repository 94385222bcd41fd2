"""The lines of my work: why each refund or case is on its reader's list, and how long it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from reconciliation.models import Case
from refunds.domain import states
from refunds.domain.roles import LEAD
from refunds.ledger import dead_of_waiting
from refunds.models import Operation
from refunds.queries import pages, queue
from review import facts
from review.access import Viewer
from review.given import given_to
from review.presenters import approval, rows, waiting
from review.presenters.facts import CaseFacts, OperationFacts
from review.presenters.sentences import stale_words
from review.presenters.words import actor_word, short, state_word

BLOCK_ROWS = 7
# Own proposals and returns are shown this far back.
OWN_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a list. `key` and `version` are what a poll compares; `late` words are loud.

    Without `currency` the amount is not known, without `order_ref` the order is not.
    """

    key: str
    version: int
    state: str
    flag: str = ""
    amount_minor: int = 0
    currency: str = ""
    order_ref: str = ""
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


def to_approve(who: Viewer) -> list[Line]:
    found = list(
        queue.waiting_for(who.person, dead_of_waiting(), only_with_finance=LEAD not in who.roles)[
            : BLOCK_ROWS + 1
        ]
    )
    given = given_to(found)
    lines = []
    for op in found:
        plain = facts.operation(op)
        counting, dead = given[op.pk].facts, given[op.pk].dead_facts
        lines.append(
            _line(
                op,
                plain,
                who,
                why=_reason(plain),
                flag="stale" if waiting.is_stale(plain) or dead else "",
                notes=waiting.approval_notes(plain, counting, who.clock, dead=dead),
                by_small=approval.policy_word(plain, counting),
            )
        )
    return lines


def returned(who: Viewer) -> list[Line]:
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


def oldest(who: Viewer) -> list[Line]:
    """What nobody knows yet, with the last that was found out."""
    found = list(queue.oldest_uncertain()[: BLOCK_ROWS + 1])
    last = pages.last_evidence([op.pk for op in found])
    lines = []
    for op in found:
        plain = facts.operation(op)
        bar = rows.target_bar(plain, who.clock)
        evidence = facts.evidence(last[op.pk]) if op.pk in last else None
        why = rows.what_we_know(plain, evidence, who.clock)
        lines.append(_line(op, plain, who, why=why, age=bar.age, left=bar.due, late=bar.late))
    return lines


def asked(who: Viewer) -> list[Line]:
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
    in_queue = plain.state == states.AWAITING_APPROVAL
    page = reverse("operation", args=[op.pk])
    values: dict[str, Any] = {
        "key": op.pk.hex,
        "version": op.version,
        "state": plain.state,
        "flag": "stale" if waiting.is_stale(plain) and in_queue else "",
        "amount_minor": plain.amount_minor,
        "currency": plain.currency,
        "order_ref": plain.order_ref,
        "small": f"op {short(op.pk)}",
        "url": f"{reverse('approvals')}?open={op.pk}#row-{op.pk}" if in_queue else page,
        "by": plain.proposer,
        "age": who.clock.age(op.created_at),
        "left": waiting.left_words(plain, who.clock),
        "late": waiting.is_expiring(plain, who.clock),
    }
    return Line(**(values | told))


def cases(who: Viewer, found: QuerySet[Case]) -> list[Line]:
    return [_case_line(case, who) for case in found[: BLOCK_ROWS + 1]]


def _case_line(case: Case, who: Viewer) -> Line:
    told = facts.case(case)
    op = case.operation
    plain = facts.operation(op) if op else None
    bar = rows.case_bar(told, plain, who.clock)
    payment = case.payment
    if payment is None:
        return _account_line(case, told, bar)
    return Line(
        key=f"case-{case.pk}",
        version=case.owner_id or 0,
        state=op.state if op else "",
        flag="" if op else "payment",
        amount_minor=op.amount_minor if op else payment.captured_minor,
        currency=payment.currency,
        order_ref=payment.order.ref,
        small=f"op {short(op.pk)}" if op else payment.ref,
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


def _account_line(case: Case, told: CaseFacts, bar: rows.Bar) -> Line:
    """A case about payments that are not known here: no order and no amount to show."""
    return Line(
        key=f"case-{case.pk}",
        version=case.owner_id or 0,
        state="",
        flag="payment",
        small=case.account,
        url=f"{reverse('unknown', query={'tab': 'person'})}#row-case-{case.pk}",
        why=told.because,
        notes=[", ".join(state_word(reason) for reason in told.reasons)],
        by=told.owner or "nobody",
        age=bar.age,
        left=bar.due,
        late=bar.late,
    )
