"""From rows to the plain values that presenters read."""

from __future__ import annotations

from reconciliation.models import Case, CaseEvent
from refunds.domain.contract import ProviderContract
from refunds.models import (
    Approval,
    Attempt,
    Event,
    Evidence,
    Operation,
    OrderMove,
    ProviderRefund,
)
from refunds.providers import registry
from review.presenters.facts import (
    ApprovalFacts,
    AttemptFacts,
    CaseFacts,
    EventFacts,
    EvidenceFacts,
    MoveFacts,
    OperationFacts,
    RefundFacts,
    RemedyFacts,
    StepFacts,
)


def contract_of(account: str) -> ProviderContract | None:
    """The contract of an account, or None where the installation no longer names it."""
    known = registry.accounts().get(account)
    return known.contract if known else None


def operation(row: Operation) -> OperationFacts:
    """Needs order, payment, agent, owner and proposer to be loaded."""
    order, payment = row.order, row.payment
    proposer = row.agent.name if row.agent else row.proposer.username if row.proposer else "?"
    return OperationFacts(
        id=row.pk,
        state=row.state,
        version=row.version,
        amount_minor=row.amount_minor,
        currency=row.currency,
        account=row.provider_account,
        order_ref=order.ref,
        order_version=order.version,
        payment_ref=payment.ref,
        payment_state=payment.state,
        captured_minor=payment.captured_minor,
        refunded_minor=payment.refunded_minor,
        held_minor=payment.held_minor,
        frozen=order.frozen,
        halted=row.halted,
        payment_halted=payment.halted,
        reason_code=row.reason_code,
        reason_text=row.reason_text,
        requested_by_kind=row.requested_by_kind,
        requested_by_ref=row.requested_by_ref,
        ticket_ref=row.ticket_ref,
        run_ref=row.run_ref,
        step_ref=row.step_ref,
        proposer=proposer,
        agent_owner=row.agent_owner.username if row.agent_owner else None,
        tier=row.tier,
        quorum=row.quorum,
        possible_repeat=row.possible_repeat,
        stale_cause=row.stale_cause,
        pending_reason=row.pending_reason,
        attempt_count=row.attempt_count,
        lookup_started=row.lookup_started,
        created_at=row.created_at,
        entered_at=row.entered_at,
        expires_at=row.expires_at,
        not_before=row.not_before,
        due_at=row.due_at,
        unknown_since=row.unknown_since,
        settled_at=row.settled_at,
        contract=contract_of(row.provider_account),
    )


def approval(row: Approval) -> ApprovalFacts:
    return ApprovalFacts(
        approver=row.approver.username,
        as_role=row.as_role,
        round=row.round,
        order_version=row.order_version,
        shown=row.shown,
        asked_by_approver=row.asked_by_approver,
        separate_refund_confirmed=row.separate_refund_confirmed,
        expires_at=row.expires_at,
        at=row.at,
    )


def event(row: Event) -> EventFacts:
    return EventFacts(
        seq=row.seq,
        event=row.event,
        from_state=row.from_state,
        to_state=row.to_state,
        actor=row.actor,
        attempt_no=row.attempt_no,
        evidence_id=row.evidence_id,
        detail=row.detail,
        at=row.at,
    )


def attempt(row: Attempt) -> AttemptFacts:
    return AttemptFacts(
        no=row.no,
        recorded_at=row.recorded_at,
        send_deadline=row.send_deadline,
        stop_proof_at=row.stop_proof_at,
        connected_at=row.connected_at,
        first_byte_at=row.first_byte_at,
        closed_at=row.closed_at,
        outcome=row.outcome,
        settled_by_evidence=row.settled_by_evidence,
    )


def evidence(row: Evidence) -> EvidenceFacts:
    return EvidenceFacts(
        id=row.pk,
        kind=row.kind,
        attempt_no=row.attempt_no,
        lookup_no=row.lookup_no,
        started_at=row.started_at,
        stored_at=row.stored_at,
        facts=row.facts,
    )


def case(row: Case) -> CaseFacts:
    return CaseFacts(
        ref=f"C-{row.pk}",
        reasons=tuple(row.reasons),
        because=row.because,
        opened_at=row.opened_at,
        due_at=row.due_at,
        owner=row.owner.username if row.owner else None,
        owned_until=row.owned_until,
        snoozed_until=row.snoozed_until,
        escalated_to=row.escalated_to,
        closed_at=row.closed_at,
        closed_because=row.closed_because,
    )


def step(row: CaseEvent) -> StepFacts:
    return StepFacts(kind=row.kind, actor=row.actor, detail=row.detail, at=row.at)


def remedy(row: Operation) -> RemedyFacts:
    """Needs agent and proposer to be loaded."""
    return RemedyFacts(
        id=row.pk,
        state=row.state,
        amount_minor=row.amount_minor,
        currency=row.currency,
        proposer=row.agent.name if row.agent else row.proposer.username if row.proposer else "?",
        created_at=row.created_at,
    )


def move(row: OrderMove) -> MoveFacts:
    return MoveFacts(
        version=row.version,
        cause=row.cause,
        operation_id=row.operation_id,
        amount_minor=row.amount_minor,
        actor=row.actor,
        detail=row.detail,
        at=row.at,
    )


def refund(row: ProviderRefund) -> RefundFacts:
    return RefundFacts(
        ref=row.ref,
        amount_minor=row.amount_minor,
        provider_status=row.provider_status,
        counts=row.counts,
        operation_id=row.operation_id,
        first_seen_at=row.first_seen_at,
    )
