"""The four tools as a model sees them: names, words, strict inputs, declared outputs.

Outputs are those of the REST door; `results.json` beside this file is written from its models.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from mcp_types import Tool, ToolAnnotations

NAME: Final = "aftersend"
WAIT_SECONDS_DEFAULT: Final = 8
WAIT_SECONDS_MAX: Final = 25

INSTRUCTIONS: Final = (
    "Propose refunds and ask what became of them. A person approves; you cannot. Propose a refund"
    " once: proposing it again never makes it faster and never helps. The outcome `unknown` means"
    " that the money may or may not have moved and that we are finding out: it is not a failure."
    " Tell the customer the words in `say`, promise nothing else, and follow `next_action`."
)

_PROPOSE: Final = """\
Ask for one refund of one payment of an order. A person approves it before any money moves.

Call this once per refund the customer is owed. The answer is where that refund stands:
- `awaiting_approval`: recorded; a person has to decide. That takes minutes or hours.
- `unknown`: it was sent and no answer came. The money MAY OR MAY NOT have moved. This is not a
  failure. We are finding out. Do not propose again: it never helps and pays nobody sooner.
- `conflict` or `already_done`: this refund exists already; the answer is that refund. It is no
  error and there is nothing to repeat.
- `denied`: a rule refused it; `reasons` says which.
Always follow `next_action`. Tell the customer the text in `say`, not your own guess.
If this tool itself reports an error with a `code`, read `what_to_do`: it says what to correct.
If it reports that no answer came, call it again with exactly the same arguments.
Send the amount once: `amount` as text ("79.00") or `amount_minor` as a whole number (7900)."""

_STATUS: Final = """\
Ask what became of a refund that was proposed, by its `operation_id`. Changes nothing.

`unknown` means that nobody saw the provider's answer: the money may or may not have moved. It is
being looked up; do not propose the refund again. Ask again only after
`ask_again_after_seconds`, at most a few times: when `next_action` is `stop_and_tell_customer`,
stop asking and tell the customer the text in `say`."""

_LIST: Final = """\
Show an order's payments, what can still be refunded, and every refund of it. Changes nothing.

Use it before proposing, to see whether the refund exists already. A refund in `unknown` counts:
it may have happened."""

_WITHDRAW: Final = """\
Take back a refund that you proposed and that has not been sent. Moves no money.

Once sending has begun it cannot be taken back: the answer is then `conflict` with where the
refund stands. Withdrawing is no way to find out what happened; use get_refund_status."""


def _text(says: str, *, most: int = 128, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most, "description": says}


_IDS: Final = (
    "Leave it out, unless an answer told you to call again with it. 1 to 128 of A-Z a-z 0-9 _ . : -"
)
_WAIT: Final = {
    "type": "integer",
    "minimum": 0,
    "maximum": WAIT_SECONDS_MAX,
    "description": "Seconds to wait for an end before answering.",
}
_OPERATION_ID: Final = {
    "type": "string",
    "format": "uuid",
    "description": "The operation_id of an earlier answer.",
}
_ORDER_REF: Final = _text("The shop's number of the order.")

_PROPOSAL: Final[dict[str, Any]] = {
    "order_ref": _ORDER_REF,
    "payment_ref": _text("Which payment; leave it out when the order has one refundable payment."),
    "amount": _text(
        'Decimal text in the currency, such as "79.00". Not with amount_minor.', most=32
    ),
    "amount_minor": {
        "type": "integer",
        "minimum": 1,
        "maximum": 999_999_999_999,
        "description": "Whole minor units, such as 7900 for 79.00 USD. Not with amount.",
    },
    "currency": {
        "type": "string",
        "pattern": "^[A-Z]{3}$",
        "description": "ISO 4217 in capital letters, the currency of the payment.",
    },
    "reason_code": {
        "type": "string",
        "enum": [
            "damaged_item",
            "not_received",
            "returned_item",
            "duplicate_payment",
            "cancelled_order",
            "price_adjustment",
            "goodwill",
            "other",
        ],
        "description": "Why.",
    },
    "reason_text": _text("Why, in a sentence, for the person who approves.", most=500, least=0),
    "requested_by": {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["person", "customer", "system"]},
            "ref": _text("Your reference of them, such as the customer's number."),
        },
        "required": ["kind", "ref"],
        "additionalProperties": False,
        "description": "Who wants the refund.",
    },
    "request_ref": _text(
        "Your own name of this wish, such as the return's number. One name is one refund, for ever."
    ),
    "separate_from": {
        "type": "string",
        "format": "uuid",
        "description": "Only for a second equal refund that is really owed: the operation_id of the"
        " first. A person has to confirm it.",
    },
    "ticket_ref": _text("The ticket this belongs to.", least=0),
    "run_ref": _text("Your run.", least=0),
    "step_ref": _text("The step of your run.", least=0),
    "claims": {
        "type": "object",
        "maxProperties": 50,
        "description": "What you believe to be true, shown to the approver as unverified.",
    },
    "read_links": {
        "type": "array",
        "maxItems": 20,
        "items": {"type": "string", "maxLength": 500, "pattern": r"^https://[^\s]+$"},
        "description": "Pages you read, for the approver.",
    },
    "session_id": _text(_IDS),
    "tool_call_id": _text(_IDS),
    "wait_seconds": _WAIT | {"default": WAIT_SECONDS_DEFAULT},
}


def _strict(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_OUTPUTS: Final[dict[str, dict[str, Any]]] = json.loads(
    files(__package__).joinpath("results.json").read_text(encoding="utf-8")
)
_RESULT: Final = _OUTPUTS["result"]
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)

TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="propose_refund",
        title="Propose a refund",
        description=_PROPOSE,
        input_schema=_strict(_PROPOSAL, "order_ref", "currency", "reason_code", "requested_by"),
        output_schema=_RESULT,
        # Not idempotent as a promise to hosts, which may repeat what is: whether two calls are
        # the same refund is decided by what they carry. Open: money leaves through a provider.
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=False,
            open_world_hint=True,
        ),
    ),
    Tool(
        name="get_refund_status",
        title="Ask what became of a refund",
        description=_STATUS,
        input_schema=_strict(
            {
                "operation_id": _OPERATION_ID,
                "session_id": _text(_IDS),
                "wait_seconds": _WAIT | {"default": 0},
            },
            "operation_id",
        ),
        output_schema=_RESULT,
        annotations=_READS,
    ),
    Tool(
        name="list_order_refunds",
        title="Show an order's refunds",
        description=_LIST,
        input_schema=_strict({"order_ref": _ORDER_REF}, "order_ref"),
        output_schema=_OUTPUTS["order"],
        annotations=_READS,
    ),
    Tool(
        name="withdraw_refund",
        title="Withdraw a proposed refund",
        description=_WITHDRAW,
        input_schema=_strict(
            {
                "operation_id": _OPERATION_ID,
                "reason": _text("Why, in a sentence.", most=500, least=0),
            },
            "operation_id",
        ),
        output_schema=_RESULT,
        # It ends a proposal for good; a second call finds it ended and changes nothing.
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    ),
)

_BY_NAME: Final = {tool.name: tool for tool in TOOLS}


def refusal_of_names(tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The problem of a tool, or of an argument's name, that is unknown or missing; else None.

    What the values may be is for the door to say, which knows them best.
    """
    if tool not in _BY_NAME:
        return _problem(
            "tool_unknown", f"There is no tool {tool[:60]!r}.", f"Use: {', '.join(_BY_NAME)}.", None
        )
    schema = _BY_NAME[tool].input_schema
    for name in arguments:
        if name not in schema["properties"]:
            shown = name[:60]
            says = f"{shown}: {tool} has no such argument."
            return _problem(
                "field_unknown", says, f"Use: {', '.join(schema['properties'])}.", shown
            )
    for name in schema["required"]:
        if arguments.get(name) is None:
            return _problem("field_missing", f"{name} is missing.", "Send it.", name)
    return None


def _problem(code: str, detail: str, what_to_do: str, field: str | None) -> dict[str, Any]:
    return {
        "code": code,
        "detail": detail,
        "what_to_do": what_to_do,
        "field": field,
        "next_action": "correct_and_repeat",
    }
