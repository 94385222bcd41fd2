"""What follows from what happened: who is told, and in which words. Pure.

A message names amount, order, why and a link, and nothing of the customer; free text of anybody
stays with us. Nothing can be done from a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from refunds.domain import money, states
from refunds.domain.roles import ADMIN, FINANCE, LEAD, OPS, OPS_LEAD

# Kinds of messages.
TICKET: Final = "ticket_update"
AGENT: Final = "agent_callback"
CUSTOMER: Final = "customer_message"
STAFF: Final = "staff_message"
KINDS: Final = (TICKET, AGENT, CUSTOMER, STAFF)

# Audiences, which the expansion turns into receivers. A role is an audience too.
TICKET_DESK: Final = "ticket"
MERCHANT: Final = "merchant"
ITS_AGENT: Final = "agent"
ASKERS: Final = "askers"
ON_CALL: Final = "on_call"
ROLES: Final = (LEAD, OPS, OPS_LEAD, FINANCE, ADMIN)
AUDIENCES: Final = (*ROLES, ON_CALL)

# Reasons of a case for which somebody is woken: money may have gone twice, or not as proven.
PAGING_REASONS: Final = frozenset({"duplicate", "contradiction"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """What a message may name of an operation. Amount in minor units."""

    order_ref: str
    amount_minor: int
    currency: str
    tier: int
    quorum: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """One thing that one audience is told; `about` is a word for machines."""

    kind: str
    audience: str
    about: str
    text: str
    pages: bool = False


@dataclass(frozen=True, slots=True)
class _Move:
    """What an event means to others. `decides` and `ends` are told to whoever asked."""

    what: str
    decides: bool = False
    ends: bool = False
    customer: bool = False
    leads: str = ""


_APPROVED: Final = "was approved and will be sent"
_DONE: Final = "is confirmed: the provider’s record shows it"
_NONE: Final = "did not happen; no money moved"
_DOUBT: Final = "has no known outcome; it may or may not have happened, and is being checked"

# Events that nobody else needs to hear of are not here: a test holds this table against the
# state table's.
MOVES: Final[dict[str, _Move]] = {
    "policy_denied": _Move("was refused by policy", decides=True, ends=True, customer=True),
    "policy_held": _Move("waits for approval", leads="waits for approval"),
    "policy_cleared": _Move("was approved by policy and will be sent", decides=True),
    "approved": _Move(_APPROVED, decides=True),
    "rejected": _Move("was rejected", decides=True, ends=True, customer=True),
    "withdrawn": _Move("was withdrawn; nothing is sent", decides=True, ends=True, customer=True),
    "expired": _Move(
        "was not decided in time; nothing is sent", decides=True, ends=True, customer=True
    ),
    "approval_revoked": _Move(
        "waits for approval again: its approval was taken back",
        decides=True,
        leads="waits for approval again: its approval was taken back",
    ),
    "approval_lapsed": _Move(
        "waits for approval again: its approval no longer applies",
        decides=True,
        leads="has gone stale: look at what changed, and approve it again or reject it",
    ),
    "confirmed": _Move(_DONE, ends=True, customer=True),
    "found_succeeded": _Move(_DONE, ends=True, customer=True),
    "ruled_happened": _Move("is confirmed by the evidence", ends=True, customer=True),
    "accepted": _Move("was accepted; the provider is working on it", customer=True),
    "found_pending": _Move("was accepted; the provider is working on it", customer=True),
    "refused": _Move("was refused by the provider; no money moved", ends=True, customer=True),
    "found_failed": _Move("failed at the provider; no money moved", ends=True, customer=True),
    "proved_not_executed": _Move(_NONE, ends=True, customer=True),
    "ruled_not_happened": _Move(_NONE, ends=True, customer=True),
    "ruled_different": _Move("happened, but not as asked", ends=True, customer=True),
    "taken_back": _Move("had happened, and the money came back", ends=True, customer=True),
    "contradicted": _Move(
        f"had ended, and evidence contradicts that: it {_DOUBT}", True, True, True
    ),
    "ruling_contradicted": _Move(
        f"had ended, and evidence contradicts that: it {_DOUBT}", True, True, True
    ),
    "unanswered": _Move(_DOUBT),
    "lease_ended": _Move(_DOUBT),
    "proved_absent": _Move("did not happen so far; it is approved and will be sent"),
}
SILENT: Final = frozenset(
    {"proposed", "submission_started", "resubmitted", "not_executed", "adopted"}
)

_TELLS_ITSELF: Final = frozenset({"account_paused"})

_REASONS: Final = {
    "unresolved": "its outcome is not known, and only a person can find out",
    "overdue_pending": "the provider is working on it for too long",
    "mismatch": "money moved, but not as asked",
    "contradiction": "evidence contradicts how it had ended",
    "duplicate": "more than one refund may have been paid",
    "external": "somebody refunded outside of this system",
    "unmatched_notice": "a provider’s message fits no refund of ours",
    "poison": "checking it fails again and again",
    "remedy": "money is still owed to the customer",
}


def of_move(refund: Refund, event: str, *, latest: bool) -> Iterator[Tell]:
    """What follows from an event of the state table; `latest`: no other has followed it.

    To approve is asked of people only while it still waits.
    """
    move = MOVES.get(event)
    if move is None:
        return
    text = f"{subject(refund)} {move.what}."
    yield Tell(kind=TICKET, audience=TICKET_DESK, about=event, text=text)
    if move.decides or move.ends:
        yield Tell(kind=AGENT, audience=ITS_AGENT, about=event, text=text)
        yield Tell(kind=STAFF, audience=ASKERS, about=event, text=text)
    if move.customer:
        yield Tell(kind=CUSTOMER, audience=MERCHANT, about=event, text="")
    if move.leads and latest:
        yield Tell(kind=STAFF, audience=LEAD, about=event, text=f"{subject(refund)} {move.leads}.")


def of_approval(refund: Refund) -> Iterator[Tell]:
    """One of two people said yes; the second is asked for."""
    if refund.state != states.AWAITING_APPROVAL or refund.quorum < 2:
        return
    text = f"{subject(refund)} has one approval and needs a second person."
    for audience in (LEAD, FINANCE) if refund.tier == 3 else (LEAD,):
        yield Tell(kind=STAFF, audience=audience, about="second_approval", text=text)


def of_case(refund: Refund | None, case_ref: str, order_ref: str, reason: str) -> Iterator[Tell]:
    """A case was opened, or got a further reason. `order_ref` is empty where none is known."""
    why = _REASONS.get(reason, reason.replace("_", " "))
    about = _of_case(refund, order_ref)
    pages = reason in PAGING_REASONS
    text = f"{about} needs a person ({case_ref}): {why}."
    for audience in (ON_CALL, OPS) if pages else (OPS,):
        yield Tell(
            kind=STAFF,
            audience=audience,
            about=f"case_{reason}",
            text=text,
            pages=audience == ON_CALL,
        )


def of_ruling(refund: Refund | None, case_ref: str, order_ref: str) -> Iterator[Tell]:
    """Somebody ruled on a case, and another person must sign or decline."""
    text = f"{_of_case(refund, order_ref)} needs a second signature ({case_ref})."
    yield Tell(kind=STAFF, audience=OPS_LEAD, about="second_signature", text=text)


def of_pause(account: str, kind: str) -> Iterator[Tell]:
    """Nothing is sent to one account any more."""
    why = {
        "outage": "it does not answer; this ends by itself",
        "credential": "it refused our credential; a person must set another",
        "no_credential": "no credential is set for it",
        "verifier": "its books contradict each other; a person must find the cause",
        "duplicate": "it paid one refund twice; a person must find the cause",
        "person": "a person paused it",
    }.get(kind, kind)
    text = f"Sending to {account} is paused: {why}. Approved refunds wait."
    audience, pages = (OPS, False) if kind == "person" else (ON_CALL, True)
    yield Tell(kind=STAFF, audience=audience, about="account_paused", text=text, pages=pages)


def of_alarm(name: str, level: str, says: str, *, again: bool) -> Iterator[Tell]:
    """A monitor or verifier fires. A pause has told its beginning itself (`of_pause`)."""
    if name in _TELLS_ITSELF and not again:
        return
    pages = level == "page"
    yield Tell(
        kind=STAFF,
        audience=ON_CALL if pages else OPS,
        about=f"alarm_{name}",
        text=f"Alarm{' goes on' if again else ''} ({name.replace('_', ' ')}): {says}",
        pages=pages,
    )


def _of_case(refund: Refund | None, order_ref: str) -> str:
    if refund:
        return subject(refund)
    return f"A payment of order {order_ref}" if order_ref else "Something at a provider"


def subject(refund: Refund) -> str:
    """ "The refund of 79.00 USD on order 4821"."""
    amount = money.display(refund.amount_minor, refund.currency)
    return f"The refund of {amount} on order {refund.order_ref}"


def mail_subject(texts: list[str]) -> str:
    """One line for an e-mail: the thing itself, or how many."""
    return texts[0][:150] if len(texts) == 1 else f"Aftersend: {len(texts)} things to look at"
