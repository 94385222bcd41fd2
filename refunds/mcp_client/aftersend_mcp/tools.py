"""The four tools as a model sees them: names, strict inputs, declared outputs.

Outputs are those of the REST door; `results.json` beside this file is written from its models.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from mcp_types import Tool, ToolAnnotations

from aftersend_mcp import words

NAME: Final = "aftersend"
VERSION: Final = version("aftersend-mcp")
WAIT_SECONDS_DEFAULT: Final = 8
WAIT_SECONDS_MAX: Final = 25


def _text(says: str, *, most: int = 128, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most, "description": says}


_IDS: Final = (
    "Leave it out, unless an answer told you to call again with it. 1 to 128 of A-Z a-z 0-9 _ . : -"
)
_GIVEN: Final = "Only if you were given one for this run; never make one up."
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
        "description": "Why, as the customer tells it; `other` where none fits. It decides nothing.",
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
    "ticket_ref": _text("The ticket this belongs to. Leave it out if you know none.", least=0),
    "run_ref": _text(_GIVEN, least=0),
    "step_ref": _text(_GIVEN, least=0),
    "claims": {
        "type": "object",
        "maxProperties": 50,
        "additionalProperties": {
            "type": ["string", "integer", "boolean", "null", "array", "object"]
        },
        "description": "What you believe to be true, shown to the approver as unverified. Figures"
        ' with a fraction as text, such as "0.5".',
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
        description=words.PROPOSE,
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
        description=words.STATUS,
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
        description=words.LIST,
        input_schema=_strict({"order_ref": _ORDER_REF}, "order_ref"),
        output_schema=_OUTPUTS["order"],
        annotations=_READS,
    ),
    Tool(
        name="withdraw_refund",
        title="Withdraw a proposed refund",
        description=words.WITHDRAW,
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

BY_NAME: Final = {tool.name: tool for tool in TOOLS}
