"""What may be sent to the API: strict types, no unknown field, nothing read as something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from refunds.api.fields import (
    CALL_ID,
    AmountMinor,
    AmountText,
    Currency,
    Instant,
    LooseRef,
    OperationId,
    ReasonCode,
    ReasonText,
    Ref,
    RefundMinor,
    WishRef,
)
from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.proposal import ProposalRequest
from refunds.snapshot import ExternalRefund, OrderSnapshot, PaymentSnapshot
from refunds.text import check_ref, check_text

WAIT_SECONDS_DEFAULT = 8
WAIT_SECONDS_MAX = 25
SEQUENCE_MAX = 2**63 - 1
CLAIM_TEXT_MAX = 500
PAGE_MAX = 100


class Strict(BaseModel):
    """The base of everything that comes in."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RequestedBy(Strict):
    """Who wants the refund, as far as the caller knows."""

    model_config = ConfigDict(json_schema_extra={"example": {"kind": "customer", "ref": "cus_204"}})

    kind: Literal["person", "customer", "system"]
    ref: Ref


EXAMPLE: dict[str, JsonValue] = {
    "session_id": "chat-8812",
    "tool_call_id": "call_17",
    "request_ref": "return-17",
    "requested_by": {"kind": "customer", "ref": "cus_204"},
    "order_ref": "4821",
    "amount": "79.00",
    "currency": "USD",
    "reason_code": "damaged_item",
    "reason_text": "headphones arrived broken",
    "wait_seconds": 8,
}


class ProposalIn(Strict):
    """One wish for a refund. Exactly one of `amount_minor` and `amount`.

    The same session_id and tool_call_id always stand for the same operation. `separate_from`
    only flags; a person decides.
    """

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    session_id: str = Field(pattern=CALL_ID)
    tool_call_id: str = Field(pattern=CALL_ID)
    request_ref: WishRef | None = Field(
        None, description="Your own name of the wish, such as the return's number"
    )
    requested_by: RequestedBy
    order_ref: Ref
    payment_ref: Ref | None = Field(None, description="May be left out with one payment")
    amount: AmountText | None = Field(None, description='Decimal text, such as "79.00"')
    amount_minor: RefundMinor | None = Field(None, description="Whole minor units, such as 7900")
    currency: Currency = Field(description="ISO 4217, the currency of the payment")
    reason_code: ReasonCode = Field(description="The nearest; `other` where none fits")
    reason_text: ReasonText = Field("", description="In a sentence, for the person who approves")
    separate_from: OperationId | None = Field(
        None,
        description="Only for a second equal refund that is really owed: the first one's"
        " operation_id. It only flags; a person decides",
    )
    ticket_ref: LooseRef | None = Field(None, description="Only where there is a ticket")
    run_ref: LooseRef | None = Field(None, description="Only where your program names its runs")
    step_ref: LooseRef | None = Field(None, description="Only where your program names its steps")
    claims: dict[str, Any] = Field(
        default_factory=dict,
        max_length=50,
        description="What you believe, shown to the approver as unverified. Numbers are whole; a"
        ' figure with a fraction is text: "1.5"',
    )
    read_links: list[Annotated[str, Field(max_length=500, pattern=r"^https://[^\s]+$")]] = Field(
        default_factory=list, max_length=20, description="Pages you read, for the approver"
    )
    wait_seconds: int = Field(WAIT_SECONDS_DEFAULT, ge=0, le=WAIT_SECONDS_MAX)

    def request(self) -> ProposalRequest:
        """The same wish as a value. Raises Refusal for the amount, the currency or the texts."""
        for path, text in _texts("claims", self.claims):
            check_text(text, field=path, length_max=CLAIM_TEXT_MAX)
        for link in self.read_links:
            check_ref(link, field="read_links", length_max=500)
        return ProposalRequest(
            session_id=self.session_id,
            tool_call_id=self.tool_call_id,
            request_ref=self.request_ref,
            requested_by_kind=self.requested_by.kind,
            requested_by_ref=self.requested_by.ref,
            order_ref=self.order_ref,
            payment_ref=self.payment_ref,
            amount_minor=self._amount_in_minor(),
            currency=self.currency,
            reason_code=self.reason_code,
            reason_text=self.reason_text,
            separate_from=self.separate_from,
            ticket_ref=self.ticket_ref or "",
            run_ref=self.run_ref or "",
            step_ref=self.step_ref or "",
            claims=self.claims,
            read_links=tuple(self.read_links),
        )

    def _amount_in_minor(self) -> int:
        if self.amount is not None and self.amount_minor is not None:
            raise Refusal(
                "amount_twice",
                "Both amount and amount_minor were sent.",
                what_to_do="Send one of them.",
                field="amount",
            )
        if self.amount is not None:
            return money.parse_amount(self.amount, self.currency)
        if self.amount_minor is None:
            raise Refusal(
                "field_missing",
                "The amount is missing.",
                what_to_do='Send amount_minor (7900) or amount ("79.00").',
                field="amount_minor",
            )
        money.exponent(self.currency)
        try:
            return money.check_minor(self.amount_minor)
        except Refusal as refusal:
            refusal.field = "amount_minor"
            raise


class WithdrawalIn(Strict):
    """Why a wish is withdrawn; may be left out, and so may the whole body."""

    reason: ReasonText = Field("", description="For the record")


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, names included, with its path; the depth is bounded by the parser."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield path, name
            yield from _texts(f"{path}.{name[:40]}", item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(path, item)


class PaymentIn(Strict):
    """A payment as it is now; `captured_minor` in minor units of the order's currency."""

    ref: Ref
    provider_account: str
    state: str
    captured_minor: AmountMinor
    captured_at: Instant | None = None


class ExternalRefundIn(Strict):
    """A refund that was made elsewhere."""

    payment_ref: Ref
    provider_refund_ref: Ref
    amount_minor: AmountMinor
    provider_status: Annotated[str, Field(min_length=1, max_length=32)]
    created_at: Instant | None = None


class FactIn(Strict):
    """A fact to show beside a decision; never interpreted."""

    label: Annotated[str, Field(min_length=1, max_length=128)]
    value: Annotated[str, Field(max_length=500)]
    source: Annotated[str, Field(max_length=128)] = ""
    at: Instant | None = None


class LineIn(Strict):
    """A line of the order, to show."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    quantity: Annotated[int, Field(ge=0, le=1_000_000)] = 1
    amount_minor: AmountMinor


class OrderIn(Strict):
    """The facts of one order. What is not named stays; nothing is ever removed."""

    feed_seq: Annotated[int, Field(ge=0, le=SEQUENCE_MAX)] | None = None
    facts_as_of: Instant | None = None
    currency: str
    customer_ref: str | None = None
    return_state: str | None = None
    fulfilment_state: str | None = None
    placed_at: Instant | None = None
    links: Annotated[dict[str, str], Field(max_length=20)] | None = None
    facts: Annotated[list[FactIn], Field(max_length=100)] | None = None
    payments: list[PaymentIn] = Field(default_factory=list, max_length=50)
    external_refunds: list[ExternalRefundIn] = Field(default_factory=list, max_length=100)
    lines: Annotated[list[LineIn], Field(max_length=200)] | None = None

    def snapshot(self, ref: str) -> OrderSnapshot:
        """The same facts as a value. Raises Refusal for texts that may not be stored."""
        check_ref(ref, field="order_ref")
        for fact in self.facts or ():
            for name in ("label", "value", "source"):
                check_text(getattr(fact, name), field=f"facts.{name}", length_max=500)
        for line in self.lines or ():
            check_ref(line.name, field="lines.name", length_max=200)
        for name in self.links or ():
            check_ref(name, field="links", length_max=64)
        return OrderSnapshot(
            ref=ref,
            feed_seq=self.feed_seq,
            facts_as_of=self.facts_as_of,
            currency=self.currency,
            customer_ref=self.customer_ref,
            return_state=self.return_state,
            fulfilment_state=self.fulfilment_state,
            placed_at=self.placed_at,
            links=self.links,
            facts=_rows(self.facts),
            lines=_rows(self.lines),
            payments=tuple(PaymentSnapshot(**each.model_dump()) for each in self.payments),
            external_refunds=tuple(
                ExternalRefund(**each.model_dump()) for each in self.external_refunds
            ),
        )


class OrderLineIn(OrderIn):
    """One line of a batch: an order with its reference."""

    order_ref: Ref


def _rows(rows: list[FactIn] | list[LineIn] | None) -> list[dict[str, Any]] | None:
    """Plain values for storing: instants as ISO text."""
    return None if rows is None else [row.model_dump(mode="json") for row in rows]
