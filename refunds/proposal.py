"""A call that asks for a refund, and who makes it: values, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from refunds.models import Agent, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who proposes: an agent with its accounts, or a person. Exactly one of the two."""

    agent: Agent | None = None
    person: Person | None = None

    @property
    def name(self) -> str:
        return self.agent.name if self.agent else str(self.person and self.person.username)

    @property
    def actor(self) -> str:
        return f"{'agent' if self.agent else 'person'}:{self.name}"

    def has_account(self, account: str) -> bool:
        return self.agent is None or account in self.agent.accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """One call. `amount_minor` in minor units of `currency`; texts are the caller's own words."""

    session_id: str
    tool_call_id: str
    order_ref: str
    amount_minor: int
    currency: str
    reason_code: str
    requested_by_kind: str
    requested_by_ref: str
    payment_ref: str | None = None
    reason_text: str = ""
    request_ref: str | None = None
    separate_from: UUID | None = None
    ticket_ref: str = ""
    run_ref: str = ""
    step_ref: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    read_links: tuple[str, ...] = ()
