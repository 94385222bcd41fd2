"""Why an authorized operation was not claimed: the approval ended, or it only has to wait."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from refunds.domain import states
from refunds.ledger import moved_unexplained
from refunds.models import Approval, Operation, Reservation


def lapse_cause(operation_id: UUID) -> str | None:
    """The cause by which the approval no longer applies, or None when it still does.

    Causes: order_changed, expired, balance, authority. A halt, a pause, a stop or a quarantine is
    no cause: the approval waits. The lapse itself re-reads the state under the locks.
    """
    operation = Operation.objects.select_related(
        "order", "payment", "agent__owner", "proposer"
    ).get(pk=operation_id)
    if operation.state != states.AUTHORIZED:
        return None
    if _expired(operation):
        return "expired"
    if not _callers_allowed(operation) or not _approvers_allowed(operation):
        return "authority"
    order, payment = operation.order, operation.payment
    if _order_moved(operation) or order.frozen or payment.state != "captured":
        return "order_changed"
    holds = Reservation.objects.filter(operation=operation, state="held").exists()
    if not holds and payment.available_minor < operation.amount_minor:
        return "balance"
    return None


def sendable_until(operation: Operation) -> datetime | None:
    """Until when all that a send needs holds, the order's version aside; None: it does not now.

    Read under the locks of the caller. A pause, a stop or a quarantine only delays a send and is
    left to the claim, as is the version; a case about the operation or its payment is not.
    """
    order, payment = operation.order, operation.payment
    if order.frozen or payment.state != "captured" or payment.halted or operation.halted:
        return None
    if not _callers_allowed(operation) or not _approvers_allowed(operation):
        return None
    given = Approval.objects.filter(
        operation=operation, round=operation.round, fingerprint=operation.fingerprint
    ).values_list("expires_at", flat=True)
    return min([operation.expires_at, *given])


def order_explained(operation: Operation) -> bool:
    """Whether the order moved only as the authority to send forgives (rules 5 and 45)."""
    return not _order_moved(operation)


def _order_moved(operation: Operation) -> bool:
    """Whether the order moved in a way that the authority to send does not explain."""
    if operation.quorum == 0:
        return operation.order.version != operation.send_version
    return moved_unexplained(operation.pk)


def _expired(operation: Operation) -> bool:
    return operation.expires_at <= timezone.now()


def _callers_allowed(operation: Operation) -> bool:
    agent, proposer = operation.agent, operation.proposer
    if agent is not None:
        return agent.active and agent.owner.is_active
    return proposer is not None and proposer.is_active


def _approvers_allowed(operation: Operation) -> bool:
    """Whether the givers of this round still have the role they gave it in."""
    given = Approval.objects.filter(
        operation=operation, round=operation.round, fingerprint=operation.fingerprint
    ).select_related("approver")
    standing = [
        each.as_role
        for each in given
        if each.approver.is_active and each.approver.groups.filter(name=each.as_role).exists()
    ]
    return len(standing) >= operation.quorum and (operation.tier < 3 or len(set(standing)) == 2)
