"""What people decide before anything is sent: approve, reject, take back, withdraw.

Each verb re-reads everything under the locks, answers with a named refusal, and changes nothing
then. The page's digest must be the server's: stale means stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from refunds import balance, doorbell, policies
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.money import display
from refunds.ledger import Actor, Locked, back_to_waiting, lock, release, transition
from refunds.models import Agent, Approval, Operation, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was on the approver's screen, as the form posts it back."""

    fingerprint: bytes
    order_version: int
    separate_refund_confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """`complete` is False while further people must say yes."""

    operation: Operation
    approval: Approval
    complete: bool


def roles_of(person: Person) -> frozenset[str]:
    """Names of the groups of an active person."""
    if not person.is_active:
        return frozenset()
    return frozenset(person.groups.values_list("name", flat=True))


def approve(operation_id: UUID, person: Person, shown: Shown) -> Approved:
    """Record one person's yes to what was on their screen; authorise when the quorum is there.

    Raises Refusal: own_proposal, role_missing (403), already_decided, fingerprint_differs,
    stale_page, balance, expired (409), proof_missing (422), rate_limited (429).
    """
    policy = policies.current()
    now = timezone.now()
    with transaction.atomic():
        locked = lock(operation_id)
        operation = locked.operation
        earlier = _approvals_of_round(operation)
        role = _role_for(operation, person, earlier)
        _require_waiting(operation, now)
        _require_another(operation, person, policy.requester_may_approve_up_to)
        _require_same_screen(locked, shown)
        _require_sendable(locked)
        _require_room(locked)
        _require_pace(person, policy.approvals_per_person_hour_max, now)
        if any(each.approver_id == person.pk for each in earlier):
            raise Refusal(
                "already_decided",
                "You approved this already; it waits for another person.",
                status=409,
                what_to_do="Nothing to do.",
                operation_id=operation.pk,
            )
        if any(each.order_version != locked.order.version for each in earlier):
            # An approval of an older order version does not add up with one of today's.
            operation.round += 1
            Operation.objects.filter(pk=operation.pk).update(round=operation.round)
            earlier = []
        approval = Approval.objects.create(
            operation=operation,
            round=operation.round,
            approver=person,
            as_role=role,
            fingerprint=operation.fingerprint,
            order_version=locked.order.version,
            shown=balance.snapshot(locked.order, locked.payment),
            asked_by_approver=_asked_by(operation, person),
            separate_refund_confirmed=shown.separate_refund_confirmed,
            policy_version=policy.version,
            expires_at=now + timedelta(seconds=policy.approval_valid_seconds),
        )
        complete = _quorum_met(operation, [*earlier, approval])
        if complete:
            _authorize(locked, [*earlier, approval], now)
    return Approved(operation=operation, approval=approval, complete=complete)


def _authorize(locked: Locked, given: list[Approval], now: datetime) -> None:
    delay = settings.LIMITS.send_delay_seconds
    not_before = now + timedelta(seconds=delay)
    transition(
        locked.operation,
        "approved",
        by=Actor(states.APPROVERS, ", ".join(f"person:{each.approver.username}" for each in given)),
        sets={
            "send_version": locked.order.version,
            "not_before": not_before,
            "due_at": not_before,
            "expires_at": min(each.expires_at for each in given),
            "stale_cause": "",
        },
        detail={"round": locked.operation.round, "order_version": locked.order.version},
    )
    doorbell.ring_send(locked.operation.pk, after_seconds=delay)


def _approvals_of_round(operation: Operation) -> list[Approval]:
    return list(
        Approval.objects.select_related("approver")
        .filter(operation=operation, round=operation.round, fingerprint=operation.fingerprint)
        .order_by("pk")
    )


def _role_for(operation: Operation, person: Person, earlier: list[Approval]) -> str:
    roles = roles_of(person)
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
    if operation.tier == 3 and roles & {"lead", "finance"}:
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


def _require_waiting(operation: Operation, now: datetime) -> None:
    if operation.state != states.AWAITING_APPROVAL:
        last = operation.events.order_by("-seq").first()
        assert last is not None
        raise Refusal(
            "already_decided",
            f"{last.actor.replace('person:', '')} moved this to {operation.state} at"
            f" {last.at:%H:%M:%S} UTC."
            " Your press changed nothing.",
            status=409,
            what_to_do="Open the operation to see where it stands.",
            operation_id=operation.pk,
        )
    if operation.expires_at <= now:
        raise Refusal(
            "expired",
            f"This proposal expired at {operation.expires_at:%H:%M} UTC. Nothing was sent.",
            status=409,
            what_to_do="Ask for a new proposal if the refund is still wanted.",
            operation_id=operation.pk,
        )


def _asked_by(operation: Operation, person: Person) -> bool:
    return operation.requested_by_kind == "person" and operation.requested_by_ref == person.username


def _require_another(operation: Operation, person: Person, requester_tier_max: int) -> None:
    own = person.pk in (operation.proposer_id, operation.agent_owner_id)
    asked = _asked_by(operation, person) and operation.tier > requester_tier_max
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


def _require_same_screen(locked: Locked, shown: Shown) -> None:
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
    if operation.possible_repeat and not shown.separate_refund_confirmed:
        raise Refusal(
            "proof_missing",
            "Not approved. This may repeat an earlier refund; confirm that it is a separate one.",
            what_to_do="Tick “this is a separate refund” if you are sure, or reject.",
            field="separate_refund_confirmed",
            operation_id=operation.pk,
        )


def _require_sendable(locked: Locked) -> None:
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


def _require_room(locked: Locked) -> None:
    operation, payment = locked.operation, locked.payment
    waiting = balance.approved_not_held_minor(payment, besides=operation)
    room = payment.available_minor - waiting
    if operation.amount_minor <= room:
        return
    parts = []
    if payment.held_minor:
        parts.append(f"{display(payment.held_minor, payment.currency)} is held")
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


def _require_pace(person: Person, per_hour_max: int, now: datetime) -> None:
    given = Approval.objects.filter(approver=person, at__gte=now - timedelta(hours=1)).count()
    if given >= per_hour_max:
        raise Refusal(
            "rate_limited",
            f"You gave {given} approvals in the last hour; {per_hour_max} are allowed.",
            status=429,
            what_to_do="Let another lead decide, or wait.",
        )


def _quorum_met(operation: Operation, given: list[Approval]) -> bool:
    roles = {each.as_role for each in given}
    return len(given) >= operation.quorum and (operation.tier < 3 or len(roles) == 2)


def reject(operation_id: UUID, person: Person, *, reason: str, version: int) -> Operation:
    """A lead's no, with a reason of 10 characters or more; told to the proposer, kept for ever."""
    if len(reason.strip()) < 10:
        raise Refusal(
            "reason_too_short",
            "Not rejected. The reason needs 10 characters or more.",
            what_to_do="Say why, for the proposer.",
            field="reason",
        )
    with transaction.atomic():
        operation = lock(operation_id).operation
        _require_role(person, {"lead"}, "reject", operation)
        _require_waiting(operation, operation.created_at)
        _require_version(operation, version)
        transition(
            operation,
            "rejected",
            by=Actor(states.APPROVER, f"person:{person.username}"),
            detail={"reason": reason.strip()[:500]},
        )
    return operation


def revoke(operation_id: UUID, person: Person, *, version: int) -> Operation:
    """Take an approval back before the claim (rules 38 and 39); the round starts again.

    Raises Refusal already_sent when the claim came first: nothing was taken back then.
    """
    policy = policies.current()
    with transaction.atomic():
        locked = lock(operation_id)
        operation = locked.operation
        _require_role(person, {"lead"}, "take back an approval", operation)
        if operation.state != states.AUTHORIZED:
            raise _already_sent(operation, "Not taken back")
        _require_version(operation, version)
        by = Actor(states.APPROVER, f"person:{person.username}")
        release(locked, by=by)
        back_to_waiting(
            operation, "approval_revoked", by, "taken_back", policy.proposal_valid_seconds
        )
    return operation


def withdraw(operation_id: UUID, *, by: Actor, reason: str = "") -> Operation:
    """The caller or a lead calls it off before the claim. Raises Refusal already_sent."""
    with transaction.atomic():
        locked = lock(operation_id)
        operation = locked.operation
        if operation.state not in (states.AWAITING_APPROVAL, states.AUTHORIZED):
            raise _already_sent(operation, "Not withdrawn")
        release(locked, by=by)
        transition(operation, "withdrawn", by=by, detail={"reason": reason[:500]})
    return operation


def _require_role(person: Person, roles: set[str], act: str, operation: Operation) -> None:
    if not roles & roles_of(person):
        raise Refusal(
            "role_missing",
            f"You can read this but not {act}. It needs the role {' or '.join(sorted(roles))}.",
            status=403,
            what_to_do="Ask a support lead.",
            operation_id=operation.pk,
        )


def _require_version(operation: Operation, version: int) -> None:
    if operation.version != version:
        raise Refusal(
            "stale_page",
            f"Not recorded. This operation changed at {operation.entered_at:%H:%M:%S} UTC.",
            status=409,
            what_to_do="Look at the change, then decide again.",
            operation_id=operation.pk,
        )


def _already_sent(operation: Operation, what: str) -> Refusal:
    return Refusal(
        "already_sent",
        f"{what}: it is {operation.state} already.",
        status=409,
        what_to_do="Ask for its status; from here on only its outcome counts.",
        operation_id=operation.pk,
    )
