"""The plain values that presenters read. Amounts are minor units of the operation's currency."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from refunds.domain.contract import ProviderContract


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFacts:
    """One operation with the facts of its order and payment, as read for a page."""

    id: UUID
    state: str
    version: int
    amount_minor: int
    currency: str
    account: str
    order_ref: str
    order_version: int
    payment_ref: str
    payment_state: str
    captured_minor: int
    refunded_minor: int
    held_minor: int
    frozen: bool
    halted: bool
    payment_halted: bool
    reason_code: str
    reason_text: str
    requested_by_kind: str
    requested_by_ref: str
    ticket_ref: str
    run_ref: str
    step_ref: str
    proposer: str
    agent_owner: str | None
    tier: int
    quorum: int
    possible_repeat: bool
    stale_cause: str
    pending_reason: str
    attempt_count: int
    lookup_started: int
    created_at: datetime
    entered_at: datetime
    expires_at: datetime
    not_before: datetime | None
    due_at: datetime | None
    unknown_since: datetime | None
    settled_at: datetime | None
    contract: ProviderContract | None

    @property
    def available_minor(self) -> int:
        return self.captured_minor - self.refunded_minor - self.held_minor

    @property
    def proposer_words(self) -> str:
        """ "agent Echo (owner ada)" or "cleo"."""
        if self.agent_owner is None:
            return self.proposer
        return f"agent {self.proposer} (owner {self.agent_owner})"

    @property
    def requester_words(self) -> str:
        """ "the customer cus_204", "ada", "the system erp"."""
        if self.requested_by_kind == "person":
            return self.requested_by_ref
        return f"the {self.requested_by_kind} {self.requested_by_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFacts:
    """One person's yes."""

    approver: str
    as_role: str
    round: int
    order_version: int
    shown: dict[str, Any]
    asked_by_approver: bool
    separate_refund_confirmed: bool
    expires_at: datetime
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """One move of the operation."""

    seq: int
    event: str
    from_state: str
    to_state: str
    actor: str
    attempt_no: int | None
    evidence_id: int | None
    detail: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """One request meant for the wire."""

    no: int
    recorded_at: datetime
    send_deadline: datetime
    stop_proof_at: datetime | None
    connected_at: datetime | None
    first_byte_at: datetime | None
    closed_at: datetime | None
    outcome: str | None
    settled_by_evidence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFacts:
    """One stored answer, lookup or notice."""

    id: int
    kind: str
    attempt_no: int | None
    lookup_no: int | None
    started_at: datetime
    stored_at: datetime
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFacts:
    """A case: what waits for a person; `ref` is what it is called by, "C-30"."""

    ref: str
    reasons: tuple[str, ...]
    because: str
    opened_at: datetime
    due_at: datetime
    owner: str | None
    owned_until: datetime | None
    snoozed_until: datetime | None
    escalated_to: str
    closed_at: datetime | None
    closed_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """One step of the work on a case; `detail` is what was typed, and what was before."""

    kind: str
    actor: str
    detail: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyFacts:
    """A refund that is to make good for another; `proposer` in words."""

    id: UUID
    state: str
    amount_minor: int
    currency: str
    proposer: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFacts:
    """One change of the order's version and its cause."""

    version: int
    cause: str
    operation_id: UUID | None
    amount_minor: int | None
    actor: str
    detail: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundFacts:
    """One refund that the provider is known to have."""

    ref: str
    amount_minor: int
    provider_status: str
    counts: bool
    operation_id: UUID | None
    first_seen_at: datetime
