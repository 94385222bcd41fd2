"""How a message stands, in words. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from review.presenters.words import Clock

KINDS: Final = {
    "ticket_update": "ticket update",
    "agent_callback": "to the agent",
    "customer_message": "for the customer",
    "staff_message": "to colleagues",
}
_NAMES: Final = {
    "ticket": "the help desk",
    "merchant": "the merchant",
    "staff": "the staff room",
    "on_call": "on-call",
}


def receiver_word(receiver: str) -> str:
    """ "agent:Echo" -> "agent Echo", "person:ada" -> "ada (e-mail)"."""
    kind, _, name = receiver.partition(":")
    if kind == "person":
        return f"{name} (e-mail)"
    return f"agent {name}" if name else _NAMES.get(receiver, receiver)


def standing(
    *, state: str, because: str, due_at: datetime, delivered_at: datetime | None,
    clock: Clock,
) -> str:  # fmt: skip
    """ "delivered 14:02:11", "failing: answered 503; next try 14:10:00", "given up: ..."."""
    if state == "delivered" and delivered_at is not None:
        return f"delivered {clock.seconds(delivered_at)}"
    if state == "given_up":
        return f"given up: {because}"
    if state == "sending":
        return "being sent"
    if because:
        return f"failing: {because}; next try {clock.seconds(due_at)}"
    return f"waits until {clock.seconds(due_at)}" if due_at > clock.now else "waits for its turn"
