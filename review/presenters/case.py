"""A case in words: who has it, what was done about it, and what recording each choice would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciliation import choices
from reconciliation.choices import Offer, Seen
from reconciliation.consequences import Plan
from refunds.domain.money import display
from review.presenters.consequence import consequence
from review.presenters.facts import CaseFacts, OperationFacts
from review.presenters.then_and_now import stated
from review.presenters.words import Clock, span, state_word

ESCALATED = {
    "ops_lead": "the ops leads",
    "provider": "the provider’s support",
    "on_call": "whoever is on call",
}
REMEDIES = {
    "new_operation": "a new refund",
    "voucher": "a voucher",
    "transfer": "a bank transfer",
    "cheque": "a cheque",
}
_REFERENCES = {
    choices.RECOVERED: "Reference under which the money came back",
    choices.REMEDY: "Its reference: the operation, voucher, transfer or cheque",
}
_BUTTONS = {
    choices.HAPPENED: "Record: refund happened",
    choices.NOT_HAPPENED: "Record: refund did not happen",
    choices.DIFFERENT: "Record: a different refund happened",
    choices.ACCEPT_FIGURE: "Record: accept the provider’s figure",
    choices.CORRECT: "Record: correct by a new operation",
    choices.STILL_UNKNOWN: "Record: still not known",
    choices.EXPLAINED: "Record: explained",
    choices.NOT_OURS: "Record: nobody knows of it",
    choices.RECOVERED: "Record: recovered",
    choices.WRITTEN_OFF: "Record: written off",
    choices.ATTACH: "Record: belongs to an operation",
    choices.EXTERNAL: "Record: made elsewhere",
    choices.WRONG_ACCOUNT: "Record: wrong account",
    choices.RESUME: "Record: fixed, look again",
    choices.REMEDY: "Record: this is how it is paid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One choice as it is drawn. `amount` is what must be typed again, "" where nothing must;
    `asks_amount`: the record's currency is not the payment's, so a person says what left it."""

    offer: Offer
    proof: str
    consequence: str
    button: str
    amount: str
    asks_amount: bool

    @property
    def name(self) -> str:
        return self.offer.choice

    @property
    def ref_words(self) -> list[tuple[str, str]]:
        """The refunds to choose from, with what each is."""
        return [
            (each.ref, f"{each.ref}, {amount_words(each)}, {each.provider_status}")
            for each in self.offer.refs
        ]

    @property
    def asks_reference(self) -> str:
        """The label of the reference that this choice needs; "" for none."""
        return _REFERENCES.get(self.offer.choice, "")


def held_words(case: CaseFacts, clock: Clock) -> str:
    """ "omar, holds 23 min more", "nobody, omar’s claim lapsed at 13:02", "nobody yet"."""
    if case.owner is None:
        return "nobody yet"
    if case.owned_until is None or case.owned_until <= clock.now:
        lapsed = f" at {clock.minutes(case.owned_until)}" if case.owned_until else ""
        return f"nobody; the claim of {case.owner} lapsed{lapsed}"
    return f"{case.owner}, holds {span(case.owned_until - clock.now)} more"


def flags(case: CaseFacts, clock: Clock) -> list[str]:
    """What else is to be known about the case, as sentences."""
    found = []
    if case.snoozed_until is not None and case.snoozed_until > clock.now:
        found.append(f"Snoozed until {clock.minutes(case.snoozed_until)}.")
    if case.escalated_to:
        to = ESCALATED.get(case.escalated_to, state_word(case.escalated_to))
        found.append(f"Escalated to {to}.")
    return found


def choice(
    offer: Offer, plan: Plan, about: OperationFacts | None, clock: Clock, *, said_seen: str = ""
) -> Choice:
    """One choice with its proof and what recording it would do. `said_seen`: the plan's refund."""
    return Choice(
        offer=offer,
        proof=_proof(offer),
        consequence=consequence(
            offer.choice, plan, about, clock, people=offer.people, ref=said_seen
        ),
        button=_BUTTONS[offer.choice],
        amount=_typed_again(offer, about),
        asks_amount=about is not None
        and offer.choice != choices.HAPPENED
        and any(each.currency != about.currency for each in offer.refs),
    )


def _typed_again(offer: Offer, about: OperationFacts | None) -> str:
    if about is None or offer.choice not in choices.EVENTS or offer.choice == choices.HAPPENED:
        return ""
    if offer.choice == choices.NOT_HAPPENED:
        return display(about.amount_minor, about.currency)
    return f"what really left, in {about.currency}"


def _proof(offer: Offer) -> str:
    if not offer.open:
        return ""
    if offer.choice == choices.STILL_UNKNOWN:
        return "Always possible. Keeps the state, the owner and the next check."
    if offer.needs_testimony:
        return "By what you saw in the provider’s dashboard, with the statement beside the case."
    if offer.by_statement:
        return "By the provider’s statement beside the case: read it before you sign."
    if offer.choice == choices.NOT_HAPPENED:
        return "Nothing of ours shows, and it is proved that it cannot show any more."
    if len(offer.refs) == 1:
        return f"As {offer.refs[0].ref}: {_shows(offer.refs[0])}."
    if offer.refs:
        return f"One of {len(offer.refs)} refunds that our own lookup shows."
    return ""


def _shows(seen: Seen) -> str:
    amount = amount_words(seen)
    how = "by our marker" if seen.ours else "without our marker"
    return (
        f"found by our own lookup {how}, {amount}, {seen.provider_status}, booked for nothing else"
    )


def amount_words(seen: Seen) -> str:
    """Its amount as the provider states it."""
    return stated(seen.amount_minor, seen.currency)


def told_rows(said: dict[str, Any], currency: str) -> list[tuple[str, str]]:
    """What the first signer filled in, besides the provider's refund."""
    told = said.get("testimony") or {}
    rows = [
        ("Amount that counts", _amount_of(said.get("amount_minor"), currency)),
        ("Seen there as", str(told.get("ref") or "")),
        ("Status there", str(told.get("provider_status") or "")),
        ("Created there", str(told.get("created") or "")),
        ("Where", str(told.get("where_seen") or "")),
        ("Ticket", str(said.get("ticket") or "")),
        ("How", REMEDIES.get(str(said.get("kind") or ""), "")),
        ("Reference", str(said.get("reference") or "")),
    ]
    return [(name, value) for name, value in rows if value]


def _amount_of(amount_minor: object, currency: str) -> str:
    return display(amount_minor, currency) if isinstance(amount_minor, int) and currency else ""


def support_text(
    op: OperationFacts, key: str, sent: Sequence[datetime], request_ids: Sequence[str], booked: str
) -> str:
    """What a provider's support asks for, to be copied as it is. Instants in UTC."""
    lines = [
        f"Account: {op.account}",
        f"Payment: {op.payment_ref}",
        f"Refund asked for: {display(op.amount_minor, op.currency)}",
        f"Idempotency key: {key}",
        f"Our marker (aftersend_operation): {op.id}",
        *(f"Request {no} sent at: {at:%Y-%m-%dT%H:%M:%S.%fZ}" for no, at in enumerate(sent, 1)),
        *(f"Your request id: {each}" for each in request_ids),
        f"Your refund id: {booked or 'none known to us'}",
        "Question: was a refund made under this key, and with what status?",
    ]
    return "\n".join(lines)
