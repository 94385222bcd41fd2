"""One proposal as its approver sees it, and the digest of exactly that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from refunds import balance, policies
from refunds.consent import asked_by
from refunds.domain import states
from refunds.ledger import Sibling
from refunds.models import Approval, Operation, PolicyCheck
from refunds.queries import around
from review import facts, intent, roles
from review.access import Viewer
from review.presenters import approval, changes, sentences
from review.presenters.approval import Decision
from review.presenters.changes import ClaimRow, DiffRow, MoveRow
from review.presenters.facts import ApprovalFacts, MoveFacts, OperationFacts, RefundFacts

_UNSENT = frozenset({states.PROPOSED, states.AWAITING_APPROVAL, states.AUTHORIZED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """What ended the last round, and everything that moved since."""

    cause: str
    given: list[ApprovalFacts]
    changed: list[DiffRow]
    same: str
    moves: list[MoveRow]
    came_back_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """The opened proposal. `balance_now` is the snapshot that an approval would store."""

    op: Operation
    facts: OperationFacts
    given: list[ApprovalFacts]
    all_given: list[ApprovalFacts]
    checks: list[PolicyCheck]
    failed_checks: tuple[str, ...]
    claims: list[ClaimRow]
    differing: list[str]
    others: list[Operation]
    elsewhere: list[RefundFacts]
    refunds: list[RefundFacts]
    balance_now: dict[str, Any]
    waiting_minor: int
    room_minor: int
    lost_answer: str
    decision: Decision
    stale: Stale | None
    can_take_back: bool
    send_in_seconds: int
    shown_digest: str
    earlier_digests: tuple[str, ...]
    since_seen: list[MoveRow]

    def drawn(self) -> intent.Hidden:
        """Hidden values for one more form on this slip; each form is a press of its own."""
        return intent.drawn(version=self.op.version, shown_digest=self.shown_digest)

    def approved_since(self, shown_digest: str) -> ApprovalFacts | None:
        """The approval that came first after the screen of this digest, if only approvals came."""
        known = dict(zip(self.earlier_digests, self.given, strict=True))
        return known.get(shown_digest)

    @property
    def siblings(self) -> tuple[Sibling, ...]:
        """The other refunds of the list that have not ended; the digest holds the list too."""
        live = [each for each in self.others if each.state not in states.ENDED]
        return tuple(sorted(Sibling(each.pk, each.amount_minor) for each in live))

    @property
    def fingerprint(self) -> str:
        """Hex of what would be sent; the approve form posts it back."""
        return bytes(self.op.fingerprint).hex()

    @property
    def send_delay(self) -> int:
        """Seconds between the last approval and the first possible send."""
        return math.ceil(settings.LIMITS.send_delay_seconds)

    @property
    def booked_ref(self) -> str:
        """The provider's refund of this operation, where one is known."""
        return next((each.ref for each in self.refunds if each.operation_id == self.op.pk), "")

    @property
    def passed(self) -> str:
        passed = len(self.checks) - len(self.failed_checks)
        return f"{passed} of {len(self.checks)} passed"

    @property
    def after_minor(self) -> int:
        return self.facts.available_minor - self.facts.amount_minor


def of_round(op: Operation, given: list[Approval]) -> list[ApprovalFacts]:
    """The approvals that count: of this round and of what would be sent."""
    return [
        facts.approval(each)
        for each in given
        if each.round == op.round and bytes(each.fingerprint) == bytes(op.fingerprint)
    ]


def slip(op: Operation, who: Viewer, *, seen_version: int | None = None) -> Slip:
    """Everything an approver needs for `op` (as loaded by `pages.operation`).

    `seen_version`: the order version of an older screen; what moved since is listed for it.
    """
    return slips([op], who, seen_version=seen_version)[0]


def slips(
    ops: Sequence[Operation],
    who: Viewer,
    *,
    seen_version: int | None = None,
) -> list[Slip]:
    """A slip for each, with as many queries as for one."""
    given = around.approvals_of([op.pk for op in ops])
    since = {
        op.pk: min(known)
        for op in ops
        if (known := _known_versions(op, given[op.pk], seen_version))
    }
    near = around.around(ops, since)
    waiting = balance.approved_not_held(ops)
    return [_slip(op, who, given[op.pk], near[op.pk], waiting[op.pk], seen_version) for op in ops]


def _known_versions(op: Operation, given: list[Approval], seen_version: int | None) -> list[int]:
    """Order versions that the reader may compare today's with."""
    last = [each.order_version for each in given if each.round < op.round]
    stale_since = last[-1] if op.stale_cause and last else None
    return [each for each in (stale_since, seen_version) if each is not None]


def _slip(
    op: Operation,
    who: Viewer,
    all_given: list[Approval],
    near: around.Around,
    waiting: int,
    seen_version: int | None,
) -> Slip:
    plain = facts.operation(op)
    counting = of_round(op, all_given)
    last = [facts.approval(each) for each in all_given if each.round < op.round]
    moves = [facts.move(each) for each in near.moves]
    refunds = [facts.refund(each) for each in near.refunds]
    now = balance.snapshot(op.order, op.payment)
    claims = claim_rows(op)
    policy = policies.current()
    limits = policy.currencies.get(op.currency)
    decision = approval.decision(
        plain,
        reader(op, who, all_given),
        counting,
        room_minor=op.payment.available_minor - waiting,
        requester_tier_max=policy.requester_may_approve_up_to,
        tier1_max_minor=limits.tier1_max_minor if limits else None,
    )
    return Slip(
        op=op,
        facts=plain,
        given=counting,
        all_given=[facts.approval(each) for each in all_given],
        checks=near.checks,
        failed_checks=tuple(each.name for each in near.checks if not each.passed),
        claims=claims,
        differing=changes.differing(claims),
        others=near.others,
        elsewhere=[each for each in refunds if each.operation_id is None],
        refunds=refunds,
        balance_now=now,
        waiting_minor=waiting,
        room_minor=op.payment.available_minor - waiting,
        lost_answer=sentences.lost_answer(plain.contract),
        decision=decision,
        stale=_stale(op, plain, last, now, moves, refunds),
        can_take_back=op.state == states.AUTHORIZED and who.may(roles.TAKE_BACK),
        send_in_seconds=_send_in_seconds(op, who),
        shown_digest=_digest(op, who, now, counting, near),
        earlier_digests=tuple(
            _digest(op, who, now, counting[:count], near) for count in range(len(counting))
        ),
        since_seen=_moves_since(seen_version, moves, refunds, op.currency),
    )


def _send_in_seconds(op: Operation, who: Viewer) -> int:
    """Until sending may start; 0 when only a bell, a sweep or a pause is in between."""
    if op.not_before is None or op.not_before <= who.clock.now:
        return 0
    return int((op.not_before - who.clock.now).total_seconds())


def claim_rows(op: Operation) -> list[ClaimRow]:
    """What the agent claimed, each beside the fact of ours that it may be compared with."""
    ours = balance.snapshot(op.order, op.payment) | {
        "amount_minor": op.amount_minor,
        "fulfilment_state": op.order.fulfilment_state,
        "payment_ref": op.payment.ref,
    }
    return changes.claim_rows(op.claims, ours, op.currency)


def reader(op: Operation, who: Viewer, given: list[Approval]) -> approval.Reader:
    """How the viewer stands towards a proposal; `given` are its approvals of every round."""
    pk = who.person.pk
    return approval.Reader(
        roles=who.roles,
        own=pk in (op.proposer_id, op.agent_owner_id),
        own_agent=op.agent_id is not None and pk == op.agent_owner_id,
        asked=asked_by(op, who.person),
        approved_already=any(each.approver_id == pk and each.round == op.round for each in given),
    )


def _stale(
    op: Operation,
    plain: OperationFacts,
    last: list[ApprovalFacts],
    now: dict[str, Any],
    moves: list[MoveFacts],
    refunds: list[RefundFacts],
) -> Stale | None:
    if not op.stale_cause or not last:
        return None
    ended = [each for each in last if each.round == last[-1].round]
    changed, same = changes.diff_rows(ended[-1].shown, now, plain)
    return Stale(
        cause=sentences.stale_words(op.stale_cause),
        given=ended,
        changed=changed,
        same=changes.unchanged_line(same),
        moves=_moves_since(ended[-1].order_version, moves, refunds, op.currency),
        came_back_at=op.entered_at,
    )


def _moves_since(
    version: int | None, moves: list[MoveFacts], refunds: list[RefundFacts], currency: str
) -> list[MoveRow]:
    if version is None:
        return []
    return changes.move_rows([each for each in moves if each.version > version], refunds, currency)


def _standing(other: Operation) -> str:
    """A sibling's state as the digest has it: before its claim, all that matters is that it waits."""
    return "waiting" if other.state in _UNSENT else other.state


def _digest(
    op: Operation,
    who: Viewer,
    now: dict[str, Any],
    given: list[ApprovalFacts],
    near: around.Around,
) -> str:
    # The order's money says through its version when a sibling takes or returns some. That a
    # sibling was approved changes no money: three pages drawn together may be pressed in turn.
    return intent.digest_of(
        who.person.pk,
        str(op.pk),
        op.state,
        bytes(op.fingerprint).hex(),
        now,
        [[each.approver, each.as_role] for each in given],
        [[str(each.pk), each.amount_minor, _standing(each)] for each in near.others],
        [[each.ref, each.amount_minor, each.provider_status] for each in near.refunds],
    )
