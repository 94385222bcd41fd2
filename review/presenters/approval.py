"""Who may decide a proposal, and what the decision means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from refunds.domain.judging import tier_words
from refunds.domain.money import display
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
) -> Decision:
    """The same answers as the verb would give, so that no button is drawn that cannot work."""
    earlier = list(given)
    why = _why_not(op, reader, earlier, room_minor, requester_tier_max)
    return Decision(
        may_approve=not why,
        may_reject="lead" in reader.roles,
        why_not=why,
        note=_quorum_note(op, earlier, asked=reader.asked),
        tick=op.possible_repeat,
    )


def _why_not(
    op: OperationFacts,
    reader: Reader,
    earlier: list[ApprovalFacts],
    room_minor: int,
    requester_tier_max: int,
) -> str:
    if reader.own:
        by = f"your agent {op.proposer}" if reader.own_agent else "you"
        return f"You cannot approve this: it was proposed by {by}. Any other support lead can."
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
    if op.frozen:
        return f"Order {op.order_ref} is frozen by a person: nothing on it can be approved."
    if op.payment_state != "captured":
        return f"Payment {op.payment_ref} is {op.payment_state}: nothing can be refunded on it."
    if op.payment_halted:
        return f"Payment {op.payment_ref} is halted by an open case."
    if op.amount_minor > room_minor:
        room = display(max(room_minor, 0), op.currency)
        return (
            f"Only {room} is still refundable on order {op.order_ref}. Reject it, or ask for a"
            " smaller amount."
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


def _quorum_note(op: OperationFacts, earlier: list[ApprovalFacts], *, asked: bool) -> str:
    parts = []
    if op.quorum > 1:
        who = tier_words(op.tier)
        if earlier:
            names = " and ".join(each.approver for each in earlier)
            parts.append(
                f"{names} approved this. Yours would be the last of {op.quorum}; then sending starts."
            )
        else:
            parts.append(
                f"This needs {who}. Your approval will be the first of {op.quorum};"
                " nothing is sent until the second."
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
