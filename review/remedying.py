"""Proposing a refund that makes good for another: what the propose form is filled with, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconciliation import remedies
from refunds import making_good
from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.models import Operation, Order
from refunds.queries import pages
from review import roles
from review.access import Viewer
from review.presenters.words import state_word


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The refund `first` that the form makes good for; `fields` is what the form begins with.
    `why_not`: none can be proposed for it now, and why."""

    first: Operation
    left_minor: int
    why_not: str
    under_way: list[Operation] = field(default_factory=list)
    fields: Mapping[str, str] = field(default_factory=dict)


def remedy(order: Order, first_id: UUID, who: Viewer) -> Remedy | None:
    """For a refund of this order; None where it is none."""
    first = pages.operation(first_id)
    if first is None or first.order_id != order.pk:
        return None
    return of(first, who)


def of(first: Operation, who: Viewer) -> Remedy:
    """The same for an operation that is loaded with its order and payment."""
    left_minor = making_good.left_to_propose_minor(first)
    under_way = making_good.open_remedies(first)
    return Remedy(
        first=first,
        left_minor=left_minor,
        under_way=under_way,
        why_not=_why_not(first, left_minor, under_way, who),
        fields=_fields(first, left_minor),
    )


def _why_not(first: Operation, left_minor: int, under_way: list[Operation], who: Viewer) -> str:
    if not who.may(roles.CHOOSE_REMEDY):
        needed = roles.words_of(roles.CHOOSE_REMEDY.roles)
        return f"You can read this but not {roles.CHOOSE_REMEDY.words}. It needs the role {needed}."
    if left_minor <= 0 and under_way and first.state in making_good.OWES:
        amount = money.display(under_way[0].amount_minor, under_way[0].currency)
        return (
            f"A new refund of {amount} is proposed for it already: it is"
            f" {state_word(under_way[0].state)}."
        )
    if left_minor <= 0 or not remedies.is_asked(first):
        return (
            f"No money is recorded as owed for this refund: it is {state_word(first.state)}, and no"
            " open case asks how the customer gets it."
        )
    return ""


def _fields(first: Operation, left_minor: int) -> dict[str, str]:
    return {
        "payment": str(first.payment_id),
        "amount": money.decimal_text(left_minor, first.currency),
        "reason_code": first.reason_code,
        "ticket_ref": first.ticket_ref,
        "asked_by": "customer" if first.requested_by_kind == "customer" else "me",
        "reason_text": f"In place of {first.business_key}, which did not reach the customer.",
    }


def posted(typed: Mapping[str, str]) -> UUID | None:
    """The refund that a posted form makes good for; raises Refusal remedy_unknown."""
    text = typed.get("remedy_of", "")
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Refusal(
            "remedy_unknown",
            "Not recorded. The form named no refund to make good for.",
            what_to_do="Open the page again and use the form that it draws.",
            field="remedy_of",
        ) from error
