"""The box above the button: what recording a choice does to state, money and order, in words."""

from __future__ import annotations

from typing import Any

from reconciliation import choices
from reconciliation.consequences import Plan
from refunds.domain.money import display
from review.presenters.facts import OperationFacts
from review.presenters.words import Clock, state_word


def consequence(
    name: str, plan: Plan, about: OperationFacts | None, clock: Clock, *, people: int, ref: str = ""
) -> str:
    """What the box above the button says: state, money, order version, and who is told."""
    two = " and an ops lead signs" if people == 2 else ""
    start = f"If you record this{two}:"
    said = _does(name, plan, about, clock, ref)
    told = f" Told of it: {', '.join(plan.tells)}." if plan.tells else ""
    if name == choices.STILL_UNKNOWN:
        return said
    return f"{start} {said}{told}"


def _does(name: str, plan: Plan, about: OperationFacts | None, clock: Clock, ref: str) -> str:
    if about is None:
        return _does_without_operation(name, plan)
    asked = display(about.amount_minor, about.currency)
    left = display(plan.available_minor, about.currency)
    stays = f"{left} stay refundable on order {about.order_ref}"
    match name:
        case choices.HAPPENED:
            as_ref = f" with provider id {ref}" if ref else ""
            return (
                f"the refund of {asked} becomes succeeded{as_ref}. The {asked} held become"
                f" refunded; {stays}. No money is sent by this step."
            )
        case choices.NOT_HAPPENED:
            return (
                f"we treat {asked} as never refunded and give it back on order"
                f" {about.order_ref}: {left} are refundable then, and a new refund becomes"
                f" possible. The order becomes version {plan.order_version}. If you are wrong,"
                " the customer may be paid twice."
            )
        case choices.DIFFERENT | choices.ACCEPT_FIGURE | choices.CORRECT:
            return _does_different(name, plan, about, asked, ref)
        case choices.STILL_UNKNOWN:
            next_look = f" Next check {clock.seconds(about.due_at)}." if about.due_at else ""
            return (
                f"Kept as {state_word(about.state)}.{next_look} The customer page says we are"
                " checking; it does not ask them to do anything."
            )
        case choices.RESUME:
            return "it is looked up at once, and its failures are counted anew."
        case choices.REMEDY:
            return (
                "the case closes with your reference. Nothing is sent by this step; a new refund"
                " is proposed and approved like every other."
            )
    return f"the case closes, and what it halted may be sent again. {stays}. No money moves."


def _does_different(name: str, plan: Plan, about: OperationFacts, asked: str, ref: str) -> str:
    as_ref = f" ({ref})" if ref else ""
    owed = ""
    if name == choices.CORRECT:
        owed = " What is missing is then asked for as money still owed."
        if plan.owes_minor:
            owed = f" The missing {display(plan.owes_minor, about.currency)} are then money still owed."
    counted = ""
    if ref:
        left = display(plan.available_minor, about.currency)
        counted = (
            f" {left} stay refundable on order {about.order_ref}, version {plan.order_version}."
        )
    return (
        f"the refund of {asked} becomes mismatched, and the provider’s figure{as_ref} is what"
        f" counts.{counted} It does not send or pull back money.{owed}"
    )


def _does_without_operation(name: str, plan: Plan) -> str:
    if plan.freezes:
        return (
            "the order is frozen: no refund can be proposed, approved or sent for it until an ops"
            f" lead lifts that. It becomes version {plan.order_version}."
        )
    return "the case closes, and what it halted may be sent again. No money moves by this step."


def title(name: str) -> str:
    return choices.TITLES[name]


def stored_consequence(
    name: str,
    plan: dict[str, Any],
    said: dict[str, Any],
    about: OperationFacts | None,
    clock: Clock,
) -> str:
    """The same box for a ruling that waits, from the plan that was kept with it."""
    kept = Plan(**{**plan, "tells": tuple(plan["tells"])})
    told = said.get("testimony") or {}
    ref = str(said.get("ref") or told.get("ref") or "")
    return consequence(name, kept, about, clock, people=1, ref=ref).replace(
        "If you record this:", "If you sign:"
    )
