"""What was asked for this morning, by the product's own verbs: some of it waits, some went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from refunds import approvals, intake
from refunds.models import Agent, Operation, Person
from review.demo.screen import shown_now
from review.demo.shop import SALES, Control, refund_elsewhere

SESSION: Final = "demo-morning"
_SALES: Final = {sale.ref: sale for sale in SALES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One proposal and what follows: who approves or rejects, and whether the answer gets lost."""

    order: str
    minor: int
    by: str
    reason: str
    text: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    approvers: tuple[str, ...] = ()
    rejected_by: str = ""
    lost: bool = False
    elsewhere_minor: int = 0


WISHES: Final = (
    Wish(
        order="4821",
        minor=7900,
        by="Echo",
        reason="damaged_item",
        text="Headphones arrived broken, left side is silent.",
        claims={"order_total_minor": 12900, "return_state": "received"},
    ),
    Wish(
        order="A-1051",
        minor=8400,
        by="Foxtrot",
        reason="returned_item",
        text="Left shoe is a 41, right shoe a 43. Photo attached to the ticket.",
        claims={"captured_minor": 13250},
    ),
    Wish(order="J-3001", minor=6800, by="Foxtrot", reason="price_adjustment"),
    Wish(
        order="K-2207",
        minor=12500,
        by="Echo",
        reason="not_received",
        text="Parcel arrived without the gift wrap.",
    ),
    Wish(order="4825", minor=42900, by="Echo", reason="not_received", text="Chair never arrived."),
    Wish(
        order="4822",
        minor=4800,
        by="Foxtrot",
        reason="goodwill",
        text="Customer is unhappy with the colour.",
        rejected_by="cleo",
    ),
    Wish(
        order="A-1053",
        minor=28900,
        by="cleo",
        reason="damaged_item",
        text="A pole of the tent broke in the first night.",
        approvers=("ada",),
    ),
    Wish(
        order="4826",
        minor=124000,
        by="ben",
        reason="not_received",
        text="The carrier confirms that the desk was lost.",
    ),
    Wish(
        order="B-7731",
        minor=4900,
        by="Echo",
        reason="price_adjustment",
        text="The sale began the next day.",
    ),
    Wish(
        order="A-1052",
        minor=4500,
        by="Foxtrot",
        reason="damaged_item",
        text="The zip is torn; the customer keeps the jacket.",
        approvers=("ada", "cleo"),
        lost=True,
    ),
    Wish(
        order="B-7732",
        minor=3900,
        by="cleo",
        reason="goodwill",
        text="Delivered a week late.",
        approvers=("ada",),
        lost=True,
    ),
    Wish(
        order="A-1054",
        minor=8990,
        by="cleo",
        reason="returned_item",
        text="The jug of the blender is cracked.",
        approvers=("ada", "ben"),
        elsewhere_minor=8000,
    ),
    Wish(order="C-0402", minor=3950, by="omar", reason="price_adjustment", approvers=("ada",)),
    Wish(order="S-9001", minor=2500, by="omar", reason="goodwill", approvers=("cleo",)),
)


def ensure_wishes(
    agents: dict[str, Agent], people: dict[str, Person], control: Control
) -> list[Operation]:
    """Propose every wish once; what follows it is done only when it was new. Returns the new."""
    made = []
    for number, wish in enumerate(WISHES, 1):
        agent = agents.get(wish.by)
        caller = intake.Caller(agent=agent) if agent else intake.Caller(person=people[wish.by])
        proposed = intake.propose(_request(wish, number, has_run=agent is not None), caller)
        if proposed.outcome == "created":
            _follow(wish, proposed.operation, people, control)
            made.append(proposed.operation)
    return made


def _request(wish: Wish, number: int, *, has_run: bool) -> intake.ProposalRequest:
    """`has_run`: an agent asks, in a step of a run of its own; a person has none."""
    sale = _SALES[wish.order]
    return intake.ProposalRequest(
        session_id=SESSION,
        tool_call_id=f"call_{number}",
        order_ref=wish.order,
        amount_minor=wish.minor,
        currency=sale.currency,
        reason_code=wish.reason,
        reason_text=wish.text,
        requested_by_kind="customer",
        requested_by_ref=f"cus_{200 + SALES.index(sale) + 1}",
        ticket_ref=f"T-{20900 + number}",
        run_ref=f"run-{5500 + number}" if has_run else "",
        step_ref="3" if has_run else "",
        claims=wish.claims,
    )


def _follow(wish: Wish, operation: Operation, people: dict[str, Person], control: Control) -> None:
    if wish.lost:
        control.lose_the_answer(operation.provider_account, operation.marker)
    for name in wish.approvers:
        fresh, shown = shown_now(operation.pk)
        if fresh.state != "awaiting_approval":
            break
        approvals.approve(operation.pk, people[name], shown)
    if wish.rejected_by:
        approvals.reject(
            operation.pk,
            people[wish.rejected_by],
            reason="Not owed: the colour was chosen by the customer.",
            version=operation.version,
        )
    if wish.elsewhere_minor:
        refund_elsewhere(control, operation.payment, wish.elsewhere_minor)
