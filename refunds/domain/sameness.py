"""What counts as the same refund: the rules in the order in which intake asks them. Pure.

Intake takes its codes, fields and states from here, and the documentation its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refunds.domain import states

# What makes two calls of one id the same call. Texts, claims, tickets, runs and waits are no part.
CANONICAL_ARGUMENTS: Final = (
    "order_ref",
    "payment_ref",
    "amount_minor",
    "currency",
    "reason_code",
)
# After these ends an equal wish is answered with the first operation instead of a new one; the
# others (denied, withdrawn, expired) left nothing behind and may be asked for again.
DONE_STATES: Final = (
    states.SUCCEEDED,
    states.MISMATCHED,
    states.RETURNED,
    states.FAILED,
    states.REJECTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """One rule. `key` are the fields that make it the same; `compared` must then be equal too.

    `scope`: for whom and how long. `outcome` is what the caller gets, `status` with it; `code` is
    the refusal 409 where `compared` differs, or where the rule itself refuses.
    """

    name: str
    key: tuple[str, ...]
    compared: tuple[str, ...] = ()
    scope: str
    status: int
    outcome: str
    code: str = ""


SAME_CALL: Final = Sameness(
    name="the same call",
    key=("agent", "session_id", "tool_call_id"),
    compared=CANONICAL_ARGUMENTS,
    scope="for ever; whichever key of the agent",
    status=200,
    outcome="the same operation",
    code="tool_call_reused",
)
SAME_WISH: Final = Sameness(
    name="the same wish",
    key=("order_ref", "request_ref"),
    compared=("payment_ref", "amount_minor", "currency"),
    scope="for ever; whoever asks",
    status=200,
    outcome="the same operation",
    code="request_ref_reused",
)
OPEN_EQUIVALENT: Final = Sameness(
    name="an equal refund that is open",
    key=("payment_ref", "amount_minor", "currency"),
    scope="until the first has ended; whoever asks, with `separate_from` or without",
    status=409,
    outcome="`conflict` with the first operation",
    code="equivalent_unresolved",
)
ENDED_EQUIVALENT: Final = Sameness(
    name="an equal refund that has ended",
    key=("payment_ref", "amount_minor", "currency"),
    scope="for the policy's `repeat_window_seconds` (72 hours) after it ended as "
    + ", ".join(f"`{state}`" for state in DONE_STATES)
    + "; whoever asks, without `separate_from`",
    status=200,
    outcome="`already_done` with the first operation; nothing is created",
)
SEPARATE: Final = Sameness(
    name="a separate equal refund",
    key=("payment_ref", "amount_minor", "currency"),
    scope="after the first has ended, with `separate_from`: its `operation_id` (that of an unequal"
    " refund of the order is taken too, and only flags)",
    status=201,
    outcome="a new operation with `possible_repeat`: a person must say that it is a separate one."
    " So it is, without `separate_from`, while another refund of the order is in doubt, or after"
    " the customer had an equal one within 24 hours",
)
# Refused because the name was used for something else: the refund it met is not the one asked for.
REUSED_NAMES: Final = frozenset({SAME_CALL.code, SAME_WISH.code})
RULES: Final = (SAME_CALL, SAME_WISH, OPEN_EQUIVALENT, ENDED_EQUIVALENT, SEPARATE)


def markdown_table() -> str:
    """The rules as a table for the documentation; the first that fits, counts."""
    lines = [
        "| the same is | known by equal | for whom, how long | you get | where it differs |",
        "|---|---|---|---|---|",
    ]
    for rule in RULES:
        key = ", ".join(f"`{name}`" for name in rule.key)
        refused = f"409 `{rule.code}`" if rule.code else ""
        gets = f"{rule.status} {rule.outcome}"
        if rule.code and not rule.compared:
            gets, refused = f"{rule.status} `{rule.code}`: {rule.outcome}", ""
        if rule.compared:
            refused += " if " + ", ".join(f"`{name}`" for name in rule.compared) + " differ"
        lines.append(f"| {rule.name} | {key} | {rule.scope} | {gets} | {refused} |")
    return "\n".join(lines)
