"""The propose form: what it offers to its reader, and what one press of it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reconciliation import remedies
from refunds import intake
from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.domain.roles import REP
from refunds.domain.sameness import OPEN_EQUIVALENT
from refunds.models import Operation, Order
from refunds.proposal import REASON_CODES, Caller, ProposalRequest
from refunds.queries import orders, results
from review import intent, order_page, remedying, roles
from review.access import Viewer
from review.intent import Hidden
from review.paging import signed
from review.presenters.balance import Sum
from review.presenters.words import state_word
from review.remedying import Remedy

SESSION = "console"
OTHER_TEXT_LENGTH_MIN = 10
_NEEDED = (("amount", "no amount was typed"), ("reason_code", "no reason was chosen"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One payment of the order; `why_not` says what is in the way of a refund on it."""

    sum: Sum
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form as drawn. `why_not`: no form at all, and why; `again`: an equal refund that ended
    lately, so that the tick for a separate one is drawn; `remedy`: what it makes good for."""

    hidden: Hidden
    open: list[Choice]
    closed: list[Choice]
    why_not: str
    again: Operation | None
    remedy: Remedy | None
    order_ref: str
    reasons: tuple[str, ...] = REASON_CODES

    @property
    def name(self) -> str:
        """What its press and its draft are called; a remedy's text is kept apart."""
        return "remedy" if self.remedy else "propose"

    @property
    def about(self) -> str:
        """What its press and its draft are about."""
        return str(self.remedy.first.pk) if self.remedy else self.order_ref


def form(
    order: Order,
    sums: list[Sum],
    who: Viewer,
    *,
    again: UUID | None = None,
    remedy: Remedy | None = None,
) -> Form:
    choices = [Choice(sum=each, why_not=_closed(each, who)) for each in sums]
    return Form(
        hidden=intent.drawn(version=order.version, shown_digest=_digest(order, sums, who)),
        open=[each for each in choices if not each.why_not],
        closed=[each for each in choices if each.why_not],
        why_not=_why_not(order, choices, who) or (remedy.why_not if remedy else ""),
        again=results.find(again) if again else None,
        remedy=remedy,
        order_ref=order.ref,
    )


def _why_not(order: Order, choices: list[Choice], who: Viewer) -> str:
    if not who.may(roles.PROPOSE):
        needed = roles.words_of(roles.PROPOSE.roles)
        return f"You can read this but not {roles.PROPOSE.words}. It needs the role {needed}."
    if order.frozen:
        return _frozen(order)
    if not choices:
        return "No captured payment yet. One shows here when the shop feeds it."
    if all(each.why_not for each in choices):
        return choices[0].why_not if len(choices) == 1 else "No payment of this order is open."
    return ""


def _frozen(order: Order) -> str:
    return (
        f"Order {order.ref} is frozen by a person: no refund can be proposed until an ops lead"
        " lifts it."
    )


def _closed(each: Sum, who: Viewer) -> str:
    if each.uncertain and only_rep(who):
        return (
            "Not while it is open whether a refund of this payment has happened. A support lead can"
            " propose, and sees why."
        )
    if each.payment.state != "captured":
        return f"Payment {each.payment.ref} is {each.payment.state}: nothing can be refunded on it."
    if each.refundable_minor <= 0:
        return f"Nothing is left to refund on payment {each.payment.ref}."
    return ""


def only_rep(who: Viewer) -> bool:
    """Whether the reader may propose as a rep alone: never beside a doubt about the payment."""
    return not any(role in who.roles for role in roles.PROPOSE.roles if role != REP)


def _digest(order: Order, sums: list[Sum], who: Viewer) -> str:
    return intent.digest_of(
        who.person.pk,
        order.ref,
        order.frozen,
        [[each.payment.id, each.payment.state, each.refundable_minor] for each in sums],
    )


def propose(order: Order, who: Viewer, hidden: Hidden, typed: Mapping[str, str]) -> dict[str, Any]:
    """Propose what was typed, under the order's lock. Raises Refusal; nothing is recorded then.

    `typed`: payment (its id), amount, reason_code, reason_text, ticket_ref, asked_by (customer or
    me), separate_from, remedy_of, and shown-<id> with what the page showed as refundable.
    """
    order.refresh_from_db(from_queryset=Order.objects.select_for_update())
    fresh = orders.known(order.ref)
    assert fresh is not None, "an order is never deleted"
    sums = order_page.sums_of(fresh)
    chosen = _chosen(sums, typed)
    _require_same(fresh, sums, chosen, who, hidden, typed)
    _require_open(fresh, chosen, who)
    try:
        request = _request(fresh, chosen, who, hidden, typed)
        through = remedies.propose if request.remedy_of else intake.propose
        proposed = through(request, Caller(person=who.person))
    except Refusal as refusal:
        raise _for_people(refusal, chosen) from refusal
    op = proposed.operation
    if proposed.outcome == "already_done":
        raise Refusal(
            "already_done",
            f"Nothing was created: an equal refund of payment {chosen.payment.ref} ended lately.",
            status=409,
            what_to_do="Look at it. If this one is wanted as well, tick below that it is separate.",
            field="separate_from",
            operation_id=op.pk,
        )
    return {"act": "propose", "operation": str(op.pk), "outcome": proposed.outcome}


def _for_people(refusal: Refusal, chosen: Sum) -> Refusal:
    """An equal refund in the words of a page; an agent's sentence names it by its business key."""
    live = results.find(UUID(str(refusal.operation_id))) if refusal.operation_id else None
    if refusal.code != OPEN_EQUIVALENT.code or live is None:
        return refusal
    amount = money.display(live.amount_minor, live.currency)
    return Refusal(
        refusal.code,
        f"Not recorded. An equal refund of {amount} on payment {chosen.payment.ref} has not ended:"
        f" it is {state_word(live.state)}.",
        status=refusal.status,
        what_to_do="Look at that one. If the customer is to get the same again, propose it after"
        " the first has ended.",
        operation_id=live.pk,
    )


def _chosen(sums: list[Sum], typed: Mapping[str, str]) -> Sum:
    known = {str(each.payment.id): each for each in sums}
    chosen = known.get(typed.get("payment", ""))
    if chosen is None:
        raise Refusal(
            "payment_unknown",
            "Not recorded. No payment was chosen.",
            what_to_do="Choose the payment that is to be refunded.",
            field="payment",
        )
    return chosen


def _require_same(
    order: Order,
    sums: list[Sum],
    chosen: Sum,
    who: Viewer,
    hidden: Hidden,
    typed: Mapping[str, str],
) -> None:
    shown = signed(typed.get(f"shown-{chosen.payment.id}", ""))
    if shown is not None and shown != chosen.refundable_minor:
        currency = chosen.payment.currency
        raise Refusal(
            "balance",
            f"The refundable amount changed from {money.display(shown, currency)} to"
            f" {money.display(chosen.refundable_minor, currency)} while this form was open. Adjust"
            " the amount or close the form.",
            status=409,
            what_to_do="Nothing was recorded. Your text is kept below.",
            field="amount",
        )
    hidden.require_same(
        version=order.version,
        shown_digest=_digest(order, sums, who),
        moved=f"The facts you were looking at changed; order {order.ref} is at version"
        f" {order.version} now. Your text is kept below.",
    )


def _require_open(order: Order, chosen: Sum, who: Viewer) -> None:
    if order.frozen:
        raise Refusal("order_frozen", f"Not recorded. {_frozen(order)}", status=409)
    if only_rep(who):
        doubt = orders.uncertain(order, chosen.payment.id)
        if doubt is not None:
            raise Refusal(
                "payment_uncertain",
                f"Not recorded. {_closed(chosen, who)}",
                status=409,
                operation_id=doubt.pk,
            )


def _request(
    order: Order, chosen: Sum, who: Viewer, hidden: Hidden, typed: Mapping[str, str]
) -> ProposalRequest:
    _require_filled(typed)
    by_customer = typed.get("asked_by") == "customer" and bool(order.customer_ref)
    return ProposalRequest(
        session_id=SESSION,
        tool_call_id=str(hidden.intent),
        order_ref=order.ref,
        payment_ref=chosen.payment.ref,
        amount_minor=_amount(chosen, typed.get("amount", "")),
        currency=chosen.payment.currency,
        reason_code=_reason_code(typed),
        reason_text=typed.get("reason_text", "").strip(),
        ticket_ref=typed.get("ticket_ref", "").strip(),
        requested_by_kind="customer" if by_customer else "person",
        requested_by_ref=order.customer_ref if by_customer else who.person.username,
        separate_from=_separate_from(typed),
        remedy_of=remedying.posted(typed),
    )


def _require_filled(typed: Mapping[str, str]) -> None:
    """Everything that is missing at once, not one field after the other."""
    missing = [(field, words) for field, words in _NEEDED if not typed.get(field, "").strip()]
    if missing:
        said = " and ".join(words for _, words in missing)
        raise Refusal(
            "form_incomplete",
            f"Not recorded. {said[0].upper()}{said[1:]}.",
            what_to_do="Fill in what is missing; what you typed is kept below.",
            field=missing[0][0],
        )


def _amount(chosen: Sum, text: str) -> int:
    payment = chosen.payment
    amount_minor = money.parse_amount(text.strip(), payment.currency)
    if amount_minor > chosen.refundable_minor:
        raise Refusal(
            "balance",
            f"Not recorded. Only {money.display(chosen.refundable_minor, payment.currency)} is"
            f" still refundable on payment {payment.ref}.",
            what_to_do="Propose that or less.",
            field="amount",
        )
    return amount_minor


def _reason_code(typed: Mapping[str, str]) -> str:
    code = typed["reason_code"]
    if code == "other" and len(typed.get("reason_text", "").strip()) < OTHER_TEXT_LENGTH_MIN:
        raise Refusal(
            "reason_too_short",
            f"Not recorded. For “other” the text needs {OTHER_TEXT_LENGTH_MIN} characters or more.",
            what_to_do="Say what happened, for whoever decides.",
            field="reason_text",
        )
    return code


def _separate_from(typed: Mapping[str, str]) -> UUID | None:
    text = typed.get("separate_from", "")
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Refusal(
            "separate_from_unknown",
            "Not recorded. The tick named no refund.",
            what_to_do="Open the page again and use the form that it draws.",
            field="separate_from",
        ) from error
