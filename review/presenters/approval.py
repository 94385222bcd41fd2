"""Who may decide a proposal, and what the decision means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from refunds.domain.judging import tier_words
from refunds.domain.money import display
from refunds.domain.states import AWAITING_APPROVAL
from review.presenters.facts import ApprovalFacts, OperationFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the reader may do with a proposal. `why_not` names who can, or what is in the way."""

    may_approve: bool
    may_reject: bool
    why_not: str
    note: str
    tick: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The reader's standing towards one proposal."""

    roles: frozenset[str]
    own: bool
    own_agent: bool
    asked: bool
    approved_already: bool


def decision(
    op: OperationFacts,
    reader: Reader,
    given: Iterable[ApprovalFacts],
    *,
    room_minor: int,
    requester_tier_max: int,
    tier1_max_minor: int | None = None,
    tier_because: str = "",
) -> Decision:
    """The same answers as the verb would give, so that no button is drawn that cannot work.

    `tier_because`: why it needs more people than its own amount does, where it does.
    """
    earlier = list(given)
    why = _why_not(op, reader, earlier, room_minor, requester_tier_max)
    return Decision(
        may_approve=not why,
        # Whoever asked for it themselves calls it off; turning it down is another's word.
        may_reject="lead" in reader.roles and (reader.own_agent or not reader.own),
        why_not=why,
        note=_quorum_note(op, earlier, tier1_max_minor, tier_because, asked=reader.asked),
        tick=op.possible_repeat,
    )


def own_words(op: OperationFacts, reader: Reader, room_minor: int | None = None) -> str:
    """MC-03 where the reader or their agent proposed it; empty otherwise.

    What keeps everybody from approving it stands in the place of who else can. `room_minor`: what
    is left to refund; None for what the payment itself has left.
    """
    if not reader.own:
        return ""
    by = f"your agent {op.proposer}" if reader.own_agent else "you"
    room = op.available_minor if room_minor is None else room_minor
    others = _in_the_way(op, room) or "Any other support lead can."
    return f"You cannot approve this: it was proposed by {by}. {others}"


def why_not_together(op: OperationFacts, reader: Reader, now: datetime) -> str:
    """Why this proposal cannot be ticked and approved with others; empty where it can.

    What needs a look of its own is decided by itself, however small it is.
    """
    if op.state != AWAITING_APPROVAL:
        return f"It is {op.state.replace('_', ' ')} now."
    reasons = (
        (op.expires_at <= now, "It has expired."),
        ("lead" not in reader.roles, "Approving several needs the role support lead."),
        (reader.own, "It was proposed by you or your agent."),
        (reader.asked, "You asked for it yourself: approve it by itself, so that this is seen."),
        (op.tier != 1, f"It needs {tier_words(op.tier)}."),
        (op.possible_repeat, "It may repeat an earlier refund: a person must confirm by itself."),
        (bool(op.stale_cause), "It came back stale: look at what changed first."),
        (op.frozen, "Its order is frozen by a person."),
        (op.payment_state != "captured", f"Its payment is {op.payment_state}."),
        (op.payment_halted, "Its payment is halted by an open case."),
        (op.amount_minor > op.available_minor, "Too little is left to refund on its payment."),
    )
    return next((words for holds, words in reasons if holds), "")


def _why_not(
    op: OperationFacts,
    reader: Reader,
    earlier: list[ApprovalFacts],
    room_minor: int,
    requester_tier_max: int,
) -> str:
    if reader.own:
        return own_words(op, reader, room_minor)
    if reader.asked and op.tier > requester_tier_max:
        return (
            "You cannot approve this: it was asked for by you, and it needs"
            f" {tier_words(op.tier)}. Any other support lead can."
        )
    wanted = _role_wanted(op, reader.roles, earlier)
    if wanted:
        return f"You can read this but not approve it. It needs the role {wanted}."
    if reader.approved_already:
        return "You approved this already; it waits for another person."
    return _in_the_way(op, room_minor)


def _in_the_way(op: OperationFacts, room_minor: int) -> str:
    """What keeps everybody from approving it now; empty where nothing does."""
    if op.frozen:
        return f"Order {op.order_ref} is frozen by a person: nothing on it can be approved."
    if op.payment_state != "captured":
        return f"Payment {op.payment_ref} is {op.payment_state}: nothing can be refunded on it."
    if op.payment_halted:
        return f"Payment {op.payment_ref} is halted by an open case."
    if op.amount_minor > room_minor:
        room = display(max(room_minor, 0), op.currency)
        held = f"; {display(op.held_minor, op.currency)} is held" if op.held_minor else ""
        return (
            f"Only {room} is still refundable on order {op.order_ref}{held}. Reject it, or ask"
            " for a smaller amount."
        )
    return ""


def _role_wanted(
    op: OperationFacts, roles: frozenset[str], earlier: list[ApprovalFacts]
) -> str | None:
    if op.tier < 3:
        return None if "lead" in roles else "support lead"
    taken = {each.as_role for each in earlier}
    free = [role for role in ("lead", "finance") if role not in taken]
    if roles.intersection(free):
        return None
    return " or ".join({"lead": "support lead"}.get(role, role) for role in free)


def _quorum_note(
    op: OperationFacts,
    earlier: list[ApprovalFacts],
    tier1_max_minor: int | None,
    because: str,
    *,
    asked: bool,
) -> str:
    parts = []
    if op.quorum > 1 and earlier:
        gave = " and ".join(each.approver for each in earlier)
        parts.append(
            f"{gave} approved this. Yours would be the last of {op.quorum}; then sending starts."
        )
    elif op.quorum > 1:
        who = tier_words(op.tier)
        over = tier1_max_minor is not None and op.amount_minor > tier1_max_minor
        limit = display(tier1_max_minor, op.currency) if over and tier1_max_minor else ""
        why = f"Refunds over {limit} need {who}." if limit else f"This needs {who}."
        if because:
            why = f"This needs {who}, because {because}."
        parts.append(
            f"{why} Your approval will be the first of two; nothing is sent until the second."
        )
    if asked:
        parts.append("You asked for this yourself: your approval says so, and it is counted.")
    return " ".join(parts)


def policy_word(op: OperationFacts, given: Iterable[ApprovalFacts]) -> str:
    """ "tier 2: 1 of two leads"."""
    count = len(list(given))
    words = tier_words(op.tier)
    if count and op.quorum > 1:
        return (
            f"tier {op.tier}: {count} of {words.replace('a lead and finance', 'lead and finance')}"
        )
    return f"tier {op.tier}: {words}"
