"""What a yes must meet, one named refusal each; read under the locks of the verb that asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from refunds import balance
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.money import display
from refunds.domain.roles import deciding
from refunds.ledger import Locked, Sibling, siblings_of
from refunds.models import Agent, Approval, Operation, Person
from refunds.text import check_text

# What a decision is called when it is told to whoever came second, and what undoes one.
_DECISIONS = {
    "approved": "approved",
    "policy_cleared": "approved",
    "policy_denied": "denied",
    "rejected": "rejected",
    "withdrawn": "withdrew",
}
_UNDONE = ("approval_lapsed", "approval_revoked", "contradicted")


def roles_of(person: Person) -> frozenset[str]:
    """Names of the groups of an active person."""
    if not person.is_active:
        return frozenset()
    return frozenset(person.groups.values_list("name", flat=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was on the approver's screen, as the form posts it back.

    `siblings`: the order's other refunds that have not ended, ordered by id, as the page listed
    them; never read anew for the press.
    """

    fingerprint: bytes
    order_version: int
    siblings: tuple[Sibling, ...]
    separate_refund_confirmed: bool = False


def approvals_of_round(operation: Operation) -> list[Approval]:
    return list(
        Approval.objects.select_related("approver")
        .filter(operation=operation, round=operation.round, fingerprint=operation.fingerprint)
        .order_by("pk")
    )


def role_for(operation: Operation, person: Person, earlier: list[Approval]) -> str:
    held = roles_of(person)
    roles = deciding(held)
    if operation.tier == 3:
        taken = {each.as_role for each in earlier}
        for role in ("lead", "finance"):
            if role in roles and role not in taken:
                return role
        wanted = "finance" if "lead" in taken else "lead"
    elif "lead" in roles:
        return "lead"
    else:
        wanted = "lead"
    if held != roles:
        detail = "You can read this but not approve it: an admin can mint agents' keys."
    elif operation.tier == 3 and roles & {"lead", "finance"}:
        detail = f"This still needs somebody from {wanted}."
    else:
        detail = f"You can read this but not approve it. It needs the role {wanted}."
    raise Refusal(
        "role_missing",
        detail,
        status=403,
        what_to_do=f"Ask somebody with the role {wanted}.",
        operation_id=operation.pk,
    )


def require_waiting(operation: Operation, now: datetime) -> None:
    if operation.state != states.AWAITING_APPROVAL:
        raise _decided(operation)
    if operation.expires_at <= now:
        raise Refusal(
            "expired",
            f"This proposal expired at {operation.expires_at:%H:%M} UTC. Nothing was sent.",
            status=409,
            what_to_do="Ask for a new proposal if the refund is still wanted.",
            operation_id=operation.pk,
        )


def _decided(operation: Operation) -> Refusal:
    """Who decided it, where the last that a person or policy did was a decision."""
    last = operation.events.filter(event__in=[*_DECISIONS, *_UNDONE]).order_by("-seq").first()
    if last is not None and last.event in _DECISIONS:
        who = last.actor.split(", ")[-1].split(":", 1)[-1]
        return came_first(operation.pk, who, _DECISIONS[last.event], last.at)
    return Refusal(
        "already_decided",
        f"This is {operation.state} since {operation.entered_at:%H:%M:%S} UTC."
        " Your press changed nothing.",
        status=409,
        what_to_do="Open the operation to see where it stands.",
        operation_id=operation.pk,
    )


def came_first(operation_id: UUID, who: str, did: str, at: datetime) -> Refusal:
    """Somebody else was faster; the press that came second changed nothing."""
    return Refusal(
        "already_decided",
        f"{who} {did} this at {at:%H:%M:%S} UTC. Your press changed nothing.",
        status=409,
        what_to_do="Look at where it stands now.",
        operation_id=operation_id,
    )


def asked_by(operation: Operation, person: Person) -> bool:
    """Whether it was this person who wanted it; an agent may write their name in other letters."""
    named = operation.requested_by_ref.strip().casefold()
    return operation.requested_by_kind == "person" and named == person.username.casefold()


def require_another(operation: Operation, person: Person, requester_tier_max: int) -> None:
    own = person.pk in (operation.proposer_id, operation.agent_owner_id)
    asked = asked_by(operation, person) and operation.tier > requester_tier_max
    if not own and not asked:
        return
    by = "you"
    if operation.agent_id is not None and own:
        by = f"your agent {Agent.objects.get(pk=operation.agent_id).name}"
    verb = "asked for" if asked and not own else "proposed"
    raise Refusal(
        "own_proposal",
        f"You cannot approve this: it was {verb} by {by}. Any other support lead can.",
        status=403,
        what_to_do="Leave it to another lead.",
        operation_id=operation.pk,
    )


def require_same_screen(locked: Locked, shown: Shown) -> None:
    operation, order = locked.operation, locked.order
    if shown.fingerprint != bytes(operation.fingerprint):
        raise Refusal(
            "fingerprint_differs",
            "Not approved. What was on your screen is not what would be sent.",
            status=409,
            what_to_do="Open the proposal again and compare.",
            operation_id=operation.pk,
        )
    if shown.order_version != order.version:
        raise Refusal(
            "stale_page",
            f"Not approved. Order {order.ref} changed from version {shown.order_version} to"
            f" {order.version} after this page was drawn. Nothing was reserved and nothing was"
            " sent. Below is what changed.",
            status=409,
            what_to_do="Look at what changed, then decide again.",
            operation_id=operation.pk,
            facts={"version_then": shown.order_version, "version_now": order.version},
        )
    if shown.siblings != siblings_of(operation):
        raise Refusal(
            "stale_page",
            f"Not approved. The other refunds of order {order.ref} changed after this page was"
            " drawn. Nothing was reserved and nothing was sent. Below is what there is now.",
            status=409,
            what_to_do="Look at the other refunds, then decide again.",
            operation_id=operation.pk,
            facts={"version_then": shown.order_version, "version_now": order.version},
        )
    if operation.possible_repeat and not shown.separate_refund_confirmed:
        raise Refusal(
            "proof_missing",
            "Not approved. This may repeat an earlier refund; confirm that it is a separate one.",
            what_to_do="Tick “this is a separate refund” if you are sure, or reject.",
            field="separate_refund_confirmed",
            operation_id=operation.pk,
        )


def require_sendable(locked: Locked) -> None:
    order, payment = locked.order, locked.payment
    why = None
    if order.frozen:
        why = f"Order {order.ref} is frozen by a person"
    elif payment.state != "captured":
        why = f"Payment {payment.ref} is {payment.state}"
    elif payment.halted:
        why = f"Payment {payment.ref} is halted by an open case"
    if why:
        raise Refusal(
            "stale_page",
            f"Not approved. {why}. Nothing was reserved and nothing was sent.",
            status=409,
            what_to_do="Reject the proposal, or wait until that has changed.",
            operation_id=locked.operation.pk,
            facts={"version_then": order.version, "version_now": order.version},
        )


def require_room(locked: Locked) -> None:
    operation, payment = locked.operation, locked.payment
    waiting = balance.approved_not_held_minor(payment, besides=operation)
    room = payment.available_minor - waiting
    if operation.amount_minor <= room:
        return
    parts = balance.held_words(payment)
    if waiting:
        parts.append(f"{display(waiting, payment.currency)} is approved and not yet sent")
    raise Refusal(
        "balance",
        f"Not approved. Only {display(max(room, 0), payment.currency)} is still refundable on"
        f" order {locked.order.ref}{'; ' + ', '.join(parts) if parts else ''}.",
        status=409,
        what_to_do="Reject it and ask for a smaller amount, or wait for the others to end.",
        operation_id=operation.pk,
        facts={"remaining_minor": max(room, 0)},
    )


def require_pace(person: Person, per_hour_max: int, now: datetime) -> None:
    given = Approval.objects.filter(approver=person, at__gte=now - timedelta(hours=1)).count()
    if given >= per_hour_max:
        raise Refusal(
            "rate_limited",
            f"You gave {given} approvals in the last hour; {per_hour_max} are allowed.",
            status=429,
            what_to_do="Let another lead decide, or wait.",
        )


def quorum_met(operation: Operation, given: list[Approval]) -> bool:
    roles = {each.as_role for each in given}
    return len(given) >= operation.quorum and (operation.tier < 3 or len(roles) == 2)


def require_role(
    person: Person, roles: set[str], act: str, operation: Operation | None = None
) -> None:
    if not roles & roles_of(person):
        wanted = " or ".join(sorted(roles))
        raise Refusal(
            "role_missing",
            f"You can read this but not {act}. It needs the role {wanted}.",
            status=403,
            what_to_do=f"Ask somebody with the role {wanted}.",
            operation_id=operation.pk if operation else None,
        )


def checked_reason(reason: str, *, not_done: str, what_to_do: str) -> str:
    """The reason without blanks around it: 10 to 500 characters, and a text like every other."""
    check_text(reason, field="reason", length_max=500)
    if len(reason.strip()) < 10:
        raise Refusal(
            "reason_too_short",
            f"{not_done}. The reason needs 10 characters or more.",
            what_to_do=what_to_do,
            field="reason",
        )
    return reason.strip()


def require_version(operation: Operation, version: int) -> None:
    if operation.version != version:
        raise Refusal(
            "stale_page",
            f"Not recorded. This operation changed at {operation.entered_at:%H:%M:%S} UTC.",
            status=409,
            what_to_do="Look at the change, then decide again.",
            operation_id=operation.pk,
        )


def already_sent(operation: Operation, what: str) -> Refusal:
    return Refusal(
        "already_sent",
        f"{what}: it is {operation.state} already.",
        status=409,
        what_to_do="Look at its status; from here on only its outcome counts.",
        operation_id=operation.pk,
    )


def already_ended(operation: Operation, what: str) -> Refusal:
    return Refusal(
        "already_decided",
        f"{what}: it is {operation.state} already. Nothing was sent.",
        status=409,
        what_to_do="Nothing to do.",
        operation_id=operation.pk,
    )
