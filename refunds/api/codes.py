"""Every `code` that a caller may read, with its status and what it asks for. Pure.

The documentation takes its tables from here, and a test holds the list against what is raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REST: Final = "both doors"
MCP: Final = "MCP"
MCP_HTTP: Final = "MCP over HTTP"
STDIO: Final = "`aftersend-mcp`"
FEED: Final = "the order feed"


@dataclass(frozen=True, slots=True)
class Code:
    """One code. `status` is that of HTTP, 0 where a tool alone says it; `says` is for developers."""

    status: int
    says: str
    where: str = REST


CODES: Final[dict[str, Code]] = {
    "malformed_json": Code(400, "Send one JSON object in UTF-8, each name once."),
    "too_deep": Code(400, "Nested deeper than 20 levels; send flat fields."),
    "credential_missing": Code(401, "Send `Authorization: Bearer as_…`."),
    "credential_invalid": Code(401, "Not one of our keys; check what you send."),
    "credential_revoked": Code(401, "Revoked, or its agent is paused; ask the agent's owner."),
    "credential_expired": Code(401, "Past its end; ask an admin for a new key."),
    "scope_missing": Code(403, "This key may not do that; use one that may."),
    "origin_unknown": Code(403, "A page of another site called; call from a program.", MCP_HTTP),
    "https_needed": Code(403, "The key came in the clear: use https, have it rotated.", MCP_HTTP),
    "not_found": Code(404, "Not there, or in an account that the agent does not have."),
    "method_not_allowed": Code(405, "The header `Allow` names the methods."),
    "tool_call_reused": Code(
        409,
        "**Not recorded.** These ids belong to another wish, whose refund the answer names. If"
        " yours is another one, propose it under ids of its own.",
    ),
    "request_ref_reused": Code(
        409,
        "**Not recorded.** This `request_ref` belongs to another wish, whose refund the answer"
        " names. Give yours another name.",
    ),
    "equivalent_unresolved": Code(
        409, "An equal refund has not ended; it is in the answer. Read it like a 200."
    ),
    "already_sent": Code(
        409, "Too late to withdraw; the refund is in the answer. Read it like a 200."
    ),
    "already_decided": Code(
        409, "It ended before anything was sent; it is in the answer. Read it like a 200."
    ),
    "older_snapshot": Code(409, "Newer facts of the order are stored; leave it.", FEED),
    "snapshot_conflict": Code(409, "The same `feed_seq` with other facts; raise it.", FEED),
    "currency_moved": Code(409, "An order keeps its currency.", FEED),
    "payment_moved": Code(409, "A payment keeps its order, account and currency.", FEED),
    "external_refund_moved": Code(409, "A refund made elsewhere keeps its payment.", FEED),
    "body_too_large": Code(413, "At most 64 KiB; a batch 1,000 lines and 2 MB."),
    "not_json": Code(415, "Send the `Content-Type` that `what_to_do` names."),
    "host_unknown": Code(421, "Use the installation's own address.", MCP_HTTP),
    "field_missing": Code(422, "Send the field in `field`."),
    "field_unknown": Code(422, "Leave the field out; a misspelt one is never ignored."),
    "field_format": Code(422, "`what_to_do` says which form the field has."),
    "text_too_long": Code(422, "Shorten it; put the long form into the ticket."),
    "text_control": Code(422, "Send plain text without control characters."),
    "text_card_number": Code(422, "Leave card numbers out; nothing here needs one."),
    "link_not_allowed": Code(422, "Only https links to hosts that are allowed here.", FEED),
    "datetime_naive": Code(422, "Write instants with a zone.", FEED),
    "amount_format": Code(422, '`amount` is decimal text, "79.00"; `amount_minor` a whole number.'),
    "amount_fraction": Code(422, "More digits than the currency has; nothing is rounded."),
    "amount_twice": Code(422, "Send `amount` or `amount_minor`, not both."),
    "amount_negative": Code(422, "Send it without a sign."),
    "amount_zero": Code(422, "Send the amount to refund."),
    "amount_too_large": Code(422, "At most 999999999999 minor units; check the amount."),
    "currency_unknown": Code(422, "ISO 4217, three capital letters."),
    "reason_code_unknown": Code(422, "`what_to_do` names the reason codes."),
    "order_unknown": Code(
        422, "None that this key may see; check the number with the customer, then tell a person."
    ),
    "payment_unknown": Code(422, "Leave `payment_ref` out, or send one of the order's payments."),
    "payment_ambiguous": Code(422, "The order has several payments; send `payment_ref`."),
    "separate_from_unknown": Code(422, "It names no refund of this order."),
    "request_ref_reserved": Code(422, "This name is kept for us; choose another."),
    "account_unknown": Code(422, "No such provider account here.", FEED),
    "payment_state_unknown": Code(422, "No such state of a payment.", FEED),
    "rate_limited": Code(429, "The very same call, after `retry_after_seconds`."),
    "internal_error": Code(500, "A fault of ours; it may be recorded. The very same call later."),
    "database_unavailable": Code(503, "It may be recorded. The very same call, after a while."),
    "tool_unknown": Code(0, "One of the four tools.", MCP),
    "aftersend_not_reached": Code(
        0, "Not sent, nothing recorded. The very same call later.", STDIO
    ),
    "no_answer_to_proposal": Code(
        0, "It may be recorded. The same arguments, with the two ids of `what_to_do`.", STDIO
    ),
    "no_answer": Code(0, "Sent, and nothing came back. Ask for the status later.", STDIO),
}

# What only `aftersend-mcp` advises; all else that may be advised is that of results and problems.
STDIO_ACTIONS: Final = {
    "repeat_same_call": "Only from `aftersend-mcp`: no answer came. Call again with the same"
    " arguments and the two ids that `what_to_do` names.",
}


def codes_table() -> str:
    """Every code as a Markdown table, for the documentation."""
    lines = ["| status | code | what to do | said by |", "|---|---|---|---|"]
    lines += [
        f"| {code.status or 'tool error'} | `{name}` | {code.says} | {code.where} |"
        for name, code in CODES.items()
    ]
    return "\n".join(lines)
