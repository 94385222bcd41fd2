"""A call that asks for a refund, and who makes it: values, before anything is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.models import Agent, Person
from refunds.text import check_ref, check_text

REASON_CODES = (
    "damaged_item",
    "not_received",
    "returned_item",
    "duplicate_payment",
    "cancelled_order",
    "price_adjustment",
    "goodwill",
    "other",
)
CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_MINTED_REF = re.compile(r"request-[0-9]+", re.ASCII)


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
    """One call. `amount_minor` in minor units of `currency`; texts are the caller's own words.

    `remedy_of`: the refund that this one makes good for. A person's alone; no agent's door has it.
    """

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
    remedy_of: UUID | None = None
    ticket_ref: str = ""
    run_ref: str = ""
    step_ref: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    read_links: tuple[str, ...] = ()


def check_form(request: ProposalRequest) -> None:
    """Raise Refusal for the first field that is not well-formed; looks at no stored row."""
    for name in ("session_id", "tool_call_id"):
        if not CALL_ID.fullmatch(getattr(request, name)):
            raise Refusal(
                "field_format",
                f"{name} must be 1 to 128 of A-Z a-z 0-9 _ . : -",
                what_to_do="Send the identifiers of your own session and tool call.",
                field=name,
            )
    money.exponent(request.currency)
    money.check_minor(request.amount_minor)
    if request.reason_code not in REASON_CODES:
        raise Refusal(
            "reason_code_unknown",
            f"{request.reason_code[:40]!r} is not a reason code.",
            what_to_do=f"Use one of: {', '.join(REASON_CODES)}.",
            field="reason_code",
        )
    check_text(request.reason_text, field="reason_text", length_max=500)
    for name in ("order_ref", "requested_by_ref", "ticket_ref", "run_ref", "step_ref"):
        check_ref(getattr(request, name), field=name)
    if request.request_ref is not None:
        check_ref(request.request_ref, field="request_ref")
        if _MINTED_REF.fullmatch(request.request_ref) or not request.request_ref.strip():
            raise Refusal(
                "request_ref_reserved",
                f"{request.request_ref!r} has the form that we mint ourselves, or is empty.",
                what_to_do="Send your own name of this wish, such as the return's number.",
                field="request_ref",
            )
