"""Approvals of the past, and how they stop counting."""

from __future__ import annotations

from datetime import datetime, timedelta

from refunds import balance
from refunds.domain import states
from refunds.models import Approval, Person
from review.demo.past.desk import Desk
from review.demo.past.rows import Past


def approve(desk: Desk, past: Past, person: Person, at: datetime) -> bool:
    """One person's yes; True when it completes the quorum, and the operation may be sent."""
    row, order, round_ = past.row, past.sold.order, past.row.round
    earlier = [each for _, each in past.approvals if each.round == round_]
    taken = {each.as_role for each in earlier}
    roles = desk.roles[person.username]
    as_role = next(
        role
        for role in ("lead", "finance")
        if role in roles and not (row.tier == 3 and role in taken)
    )
    approval = Approval(
        operation=row,
        round=round_,
        approver=person,
        as_role=as_role,
        fingerprint=row.fingerprint,
        order_version=order.version,
        shown=balance.snapshot(order, past.sold.payment),
        separate_refund_confirmed=row.possible_repeat,
        policy_version=desk.policy.version,
        expires_at=at + timedelta(seconds=desk.policy.approval_valid_seconds),
        at=at,
    )
    past.approvals.append((row.version, approval))
    if len(earlier) + 1 < row.quorum:
        return False
    _authorize(desk, past, [*earlier, approval], at)
    return True


def _authorize(desk: Desk, past: Past, given: list[Approval], at: datetime) -> None:
    row = past.row
    actor = ", ".join(f"person:{each.approver.username}" for each in given)
    detail = {"round": row.round, "order_version": past.sold.order.version}
    desk.move(past, "approved", states.APPROVERS, actor, at, detail)
    row.send_version = past.sold.order.version
    row.not_before = row.due_at = at + timedelta(seconds=10)
    row.expires_at = min(each.expires_at for each in given)
    row.stale_cause = ""


def lapse(
    desk: Desk, past: Past, event: str, kind: str, actor: str, at: datetime, why: str
) -> None:
    """An approval stops counting: stale, or taken back by the person who gave it."""
    row = past.row
    row.round += 1
    until = at + timedelta(seconds=desk.policy.proposal_valid_seconds)
    desk.move(past, event, kind, actor, at, {"cause": why})
    row.stale_cause, row.send_version, row.not_before = why, None, None
    row.expires_at = row.due_at = until
