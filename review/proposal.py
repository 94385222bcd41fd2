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
from refunds.domain.roles import deciding
from refunds.ledger import Sibling
from refunds.models import Operation, PolicyCheck
from refunds.queries import around, pages
from review import facts, intent, roles
from review.access import Viewer
from review.given import Given, given_to
from review.presenters import approval, changes, sentences
from review.presenters import waiting as waiting_words
from review.presenters.approval import Decision
from review.presenters.changes import ClaimRow, DiffRow, MoveRow
from review.presenters.facts import ApprovalFacts, MoveFacts, OperationFacts, RefundFacts

_UNSENT = frozenset({states.PROPOSED, states.AWAITING_APPROVAL, states.AUTHORIZED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """What ended approvals, and everything that moved since. `dead`: the order moved past an
    approval of a round that still waits for its second; nothing came back at an instant then."""

    cause: str
    given: list[ApprovalFacts]
    dead: bool
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
    can_withdraw: bool
    is_mine: bool
    send_in_seconds: int
    held_back: str
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
    def remedies(self) -> list[Operation]:
        """The refunds that are to make good for this one, the newest first."""
        return [each for each in self.others if each.remedy_of_id == self.op.pk]

    @property
    def makes_good_for(self) -> Operation | None:
        """The refund that this one stands in for, of the list that the digest holds."""
        return next((each for each in self.others if each.pk == self.op.remedy_of_id), None)

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
    given = given_to(ops)
    since = {
        op.pk: min(known) for op in ops if (known := _known_versions(given[op.pk], seen_version))
    }
    near = around.around(ops, since)
    waiting = balance.approved_not_held(ops)
    halts = who.halts if any(op.state in _UNSENT for op in ops) else []
    return [
        _slip(op, who, given[op.pk], near[op.pk], waiting[op.pk], halts, seen_version) for op in ops
    ]


def _known_versions(given: Given, seen_version: int | None) -> list[int]:
    """Order versions that the reader may compare today's with."""
    ended = given.ended
    stale_since = ended[-1].order_version if ended else None
    return [each for each in (stale_since, seen_version) if each is not None]


def _slip(
    op: Operation,
    who: Viewer,
    given: Given,
    near: around.Around,
    waiting: int,
    halts: Sequence[pages.Halt],
    seen_version: int | None,
) -> Slip:
    plain = facts.operation(op)
    counting = given.facts
    moves = [facts.move(each) for each in near.moves]
    refunds = [facts.refund(each) for each in near.refunds]
    now = balance.snapshot(op.order, op.payment)
    claims = claim_rows(op)
    policy = policies.current()
    limits = policy.currencies.get(op.currency)
    decision = approval.decision(
        plain,
        reader(op, who, given),
        counting,
        room_minor=op.payment.available_minor - waiting,
        requester_tier_max=policy.requester_may_approve_up_to,
        tier1_max_minor=limits.tier1_max_minor if limits else None,
        tier_because=next(
            (str(each.inputs.get("because", "")) for each in near.checks if each.name == "tier"), ""
        ),
    )
    return Slip(
        op=op,
        facts=plain,
        given=counting,
        all_given=[facts.approval(each) for each in given.all],
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
        stale=_stale(op, plain, given, now, moves, refunds),
        can_take_back=op.state == states.AUTHORIZED and who.may(roles.TAKE_BACK),
        can_withdraw=_can_withdraw(op, who),
        is_mine=who.person.pk in (op.proposer_id, op.agent_owner_id),
        send_in_seconds=_send_in_seconds(op, who),
        held_back=waiting_words.held_back(
            [each.kind for each in halts if each.account in ("", op.provider_account)],
            op.provider_account,
        ),
        shown_digest=_digest(op, who, now, counting, near),
        earlier_digests=tuple(
            _digest(op, who, now, counting[:count], near) for count in range(len(counting))
        ),
        since_seen=_moves_since(seen_version, moves, refunds, op.currency),
    )


def _can_withdraw(op: Operation, who: Viewer) -> bool:
    """Before it is sent: its proposer may, and a lead may end anybody's."""
    mine = op.proposer_id == who.person.pk
    return op.state in _UNSENT and who.may(roles.WITHDRAW) and (mine or "lead" in who.roles)


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


def reader(op: Operation, who: Viewer, given: Given) -> approval.Reader:
    """How the viewer stands towards a proposal; a dead approval of theirs is no yes."""
    pk = who.person.pk
    return approval.Reader(
        roles=deciding(who.roles),
        own=pk in (op.proposer_id, op.agent_owner_id),
        own_agent=op.agent_id is not None and pk == op.agent_owner_id,
        asked=asked_by(op, who.person),
        approved_already=any(each.approver_id == pk for each in given.counting),
    )


def _stale(
    op: Operation,
    plain: OperationFacts,
    given: Given,
    now: dict[str, Any],
    moves: list[MoveFacts],
    refunds: list[RefundFacts],
) -> Stale | None:
    rows = given.ended
    if not rows:
        return None
    ended = [facts.approval(each) for each in rows]
    changed, same = changes.diff_rows(ended[-1].shown, now, plain)
    return Stale(
        cause=sentences.stale_words("order_changed" if given.dead else op.stale_cause),
        given=ended,
        dead=bool(given.dead),
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
