"""What the API answers, as shapes for its documentation (and checked on the way out)."""

from __future__ import annotations

from typing import Any, Final, Literal, Optional

from pydantic import BaseModel, Field, create_model

# As types with names, so that generated clients call them by these.
type NextAction = Literal[
    "ask_status",
    "stop_and_tell_customer",
    "ask_customer",
    "done",
    "tell_a_person",
    "correct_and_propose",
    "propose_again_if_needed",
]


# What an error may advise besides; a conflict advises as the refund it met.
type ErrorAction = Literal["correct_and_repeat", "repeat_later"]


class Reason(BaseModel):
    """A check that refused, or what made an approval stale."""

    code: str
    says: str


class Result(BaseModel):
    """Where an operation stands and what is safe now. `unknown` is no failure: do not repeat."""

    operation_id: str
    business_key: str
    outcome: Literal[
        "awaiting_approval",
        "stale",
        "in_progress",
        "pending",
        "unknown",
        "succeeded",
        "mismatched",
        "returned",
        "failed",
        "rejected",
        "denied",
        "expired",
        "withdrawn",
        "already_done",
    ]
    state: str
    version: int
    sentence: str
    say: str = Field(description="What to tell the customer, word for word")
    money_may_have_moved: Literal["no", "maybe", "yes"]
    next_action: NextAction
    do_not_repeat: bool
    ask_again_after_seconds: int | None
    order_ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    provider_refund_ref: str | None
    possible_repeat: bool = Field(
        description="A person must say that it is a separate refund: an equal one ended lately,"
        " separate_from was sent, another refund of the order is in doubt, or the customer had an"
        " equal one within 24 hours"
    )
    reasons: list[Reason]
    created_at: str
    as_of: str
    pending_reason: str | None = Field(
        None, description="Only with the outcome pending: provider_working or needs_customer"
    )
    ask_customer_for: str | None = Field(
        None,
        description="Only with next_action ask_customer: what is needed; null while we do not know"
        " it, and a colleague looks it up",
    )
    until: str | None = Field(
        None, description="Only with next_action ask_customer: until when; null while not known"
    )


class Page(BaseModel):
    """Operations in the order of their ids; `next` goes into `after`."""

    items: list[Result]
    next: str | None


class Balance(BaseModel):
    """One payment in minor units of its currency."""

    ref: str
    captured_minor: int
    refunded_minor: int
    held_minor: int
    refundable_minor: int


class OrderAnswer(BaseModel):
    """An order after a feed."""

    order_ref: str
    version: int
    changed: bool
    frozen: bool
    payments: list[Balance]


class BatchAnswer(BaseModel):
    """One line of a batch: what a taken order has now, or the problem of a refused one."""

    line: int = Field(description="From 1, as the lines were sent")
    order_ref: str | None
    status: int
    version: int | None = Field(None, description="Only where taken")
    changed: bool | None = Field(None, description="Only where taken")
    frozen: bool | None = Field(None, description="Only where taken")
    payments: list[Balance] | None = Field(None, description="Only where taken")
    code: str | None = Field(None, description="Only where refused")
    detail: str | None = Field(None, description="Only where refused")
    what_to_do: str | None = Field(None, description="Only where refused")
    field: str | None = Field(None, description="Only where refused")


class PaymentWithOperations(Balance):
    """A payment, its balance and its operations, the oldest first."""

    provider_account: str
    currency: str
    state: str
    operations: list[Result]


class OrderRefunds(BaseModel):
    """The balance of an order."""

    order_ref: str
    version: int
    frozen: bool
    currency: str
    payments: list[PaymentWithOperations]
    older_left_out: bool = Field(description="More than the newest 100 operations exist")


class Problem(BaseModel):
    """Every error, RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    what_to_do: str
    field: str | None
    operation_id: str | None
    outcome: Literal["conflict"] | None
    next_action: NextAction | ErrorAction
    retry_after_seconds: int | None = Field(
        description="As the header Retry-After: when the very same call may be repeated"
    )


# `equivalent_unresolved`, `already_sent` and `already_decided` are answered with the refund that
# was met; a name that was used for something else (`tool_call_reused`, `request_ref_reused`) is
# not, so that its good news is never read as the answer to another wish.
_OF_THE_REFUND: Final[dict[str, Any]] = {
    name: (Optional[field.annotation], Field(None, description=field.description))  # noqa: UP045
    for name, field in Result.model_fields.items()
    if name not in Problem.model_fields
}
Conflict = create_model(
    "Conflict",
    __base__=Problem,
    __doc__="A 409. Where it met a refund that may be read in place of the one asked for, with"
    " every field of that result; otherwise only what a problem has.",
    **_OF_THE_REFUND,
)

_ANYWHERE: Final = frozenset({400, 401, 403, 404, 405, 422, 429, 500, 503})
_WITH_BODY: Final = _ANYWHERE | {413, 415}
READ_PROBLEMS: Final[dict[frozenset[int], Any]] = {_ANYWHERE: Problem}
PROBLEMS: Final[dict[frozenset[int], Any]] = {_WITH_BODY: Problem, frozenset({409}): Conflict}
FEED_PROBLEMS: Final[dict[frozenset[int], Any]] = {_WITH_BODY | {409}: Problem}
