"""What people decide before anything is sent: approve, reject, take back.

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
from refunds.consent import (
    Shown,
    already_sent,
    approvals_of_round,
    asked_by,
    checked_reason,
    quorum_met,
    require_another,
    require_pace,
    require_role,
    require_room,
    require_same_screen,
    require_sendable,
    require_version,
    require_waiting,
    role_for,
)
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.rejection import OTHER, REJECTION_CODES
from refunds.ledger import (
    Actor,
    Locked,
    back_to_waiting,
    lock,
    moved_unexplained,
    release,
    transition,
)
from refunds.models import Approval, Operation, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """`complete` is False while further people must say yes.

    `dead`: earlier approvals that the order has moved past; they count no longer.
    """

    operation: Operation
    approval: Approval
    complete: bool
    dead: list[Approval]


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
        # One yes of a person at a time, and none beside the one that takes their role away.
        person = Person.objects.select_for_update(no_key=True).get(pk=person.pk)
        earlier = approvals_of_round(operation)
        dead: list[Approval] = []
        if moved_unexplained(operation.pk):
            # An approval that does not explain today's order does not add up with one of today's:
            # it takes no role, and whoever gave it decides anew.
            earlier, dead = [], earlier
        role = role_for(operation, person, earlier)
        require_waiting(operation, now)
        require_another(operation, person, policy.requester_may_approve_up_to)
        require_same_screen(locked, shown)
        require_sendable(locked)
        require_room(locked)
        require_pace(person, policy.approvals_per_person_hour_max, now)
        if any(each.approver_id == person.pk for each in earlier):
            raise Refusal(
                "already_decided",
                "You approved this already; it waits for another person.",
                status=409,
                what_to_do="Nothing to do.",
                operation_id=operation.pk,
            )
        if dead:
            operation.round += 1
            Operation.objects.filter(pk=operation.pk).update(round=operation.round)
        approval = Approval.objects.create(
            operation=operation,
            round=operation.round,
            approver=person,
            as_role=role,
            fingerprint=operation.fingerprint,
            order_version=locked.order.version,
            shown=balance.snapshot(locked.order, locked.payment),
            shown_operations=[each.operation_id for each in shown.siblings],
            shown_amounts_minor=[each.amount_minor for each in shown.siblings],
            asked_by_approver=asked_by(operation, person),
            separate_refund_confirmed=shown.separate_refund_confirmed,
            policy_version=policy.version,
            expires_at=now + timedelta(seconds=policy.approval_valid_seconds),
        )
        complete = quorum_met(operation, [*earlier, approval])
        if complete:
            _authorize(locked, [*earlier, approval], now)
    return Approved(operation=operation, approval=approval, complete=complete, dead=dead)


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


def reject(
    operation_id: UUID, person: Person, *, reason: str, version: int, code: str = OTHER
) -> Operation:
    """A lead's no, with a code of the closed list and a reason of 10 characters or more; told to
    the proposer, kept for ever."""
    if code not in REJECTION_CODES:
        raise Refusal(
            "reason_code_unknown",
            "Not rejected. The kind of reason is not one of the list.",
            what_to_do=f"Choose one of: {', '.join(REJECTION_CODES)}.",
            field="reason_code",
        )
    said = checked_reason(reason, not_done="Not rejected", what_to_do="Say why, for the proposer.")
    with transaction.atomic():
        operation = lock(operation_id).operation
        require_role(person, {"lead"}, "reject", operation)
        require_waiting(operation, operation.created_at)
        require_version(operation, version)
        transition(
            operation,
            "rejected",
            by=Actor(states.APPROVER, f"person:{person.username}"),
            detail={"reason": said, "code": code},
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
        require_role(person, {"lead"}, "take back an approval", operation)
        if operation.state != states.AUTHORIZED:
            raise already_sent(operation, "Not taken back")
        require_version(operation, version)
        by = Actor(states.APPROVER, f"person:{person.username}")
        release(locked, by=by)
        back_to_waiting(
            operation, "approval_revoked", by, "taken_back", policy.proposal_valid_seconds
        )
    return operation
