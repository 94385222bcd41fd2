"""What is wrong with a tool's arguments before any door has seen them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from aftersend_mcp.tools import BY_NAME, WAIT_SECONDS_MAX

_CALL_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_REF_CHARACTERS_MAX: Final = 128
# NUL, and halves of a surrogate pair: no address can carry them.
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")

Problem = dict[str, Any]


def refusal_of_names(tool: str, arguments: Mapping[str, Any]) -> Problem | None:
    """The problem of a tool, or of an argument's name, that is unknown or missing; else None."""
    if tool not in BY_NAME:
        return _problem(
            "tool_unknown", f"There is no tool {tool[:60]!r}.", f"Use: {', '.join(BY_NAME)}.", None
        )
    schema = BY_NAME[tool].input_schema
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


def refusal_in_address(arguments: Mapping[str, Any]) -> Problem | None:
    """The problem of an argument that becomes a part of an address, where all is text; else None.

    What goes into a body keeps its type, and the door at the other end refuses it by name.
    """
    for name, read in _READ.items():
        if name in arguments:
            wrong = read(name, arguments[name])
            if wrong is not None:
                return wrong
    return None


def _operation_id(name: str, value: Any) -> Problem | None:
    try:
        UUID(value if isinstance(value, str) and len(value) == 36 else "")
    except ValueError:
        return _problem(
            "field_format", f"{name} is not an operation_id.", "Send that of an answer.", name
        )
    return None


def _order_ref(name: str, value: Any) -> Problem | None:
    if not isinstance(value, str) or not value:
        says, form = f"{name} is not a text of 1 to 128 characters.", 'Send text, such as "4821".'
        return _problem("field_format", says, form, name)
    if len(value) > _REF_CHARACTERS_MAX:
        says = f"{name} has {len(value)} characters; {_REF_CHARACTERS_MAX} are allowed."
        return _problem("text_too_long", says, "Send the shop's number of the order.", name)
    if _UNFIT.search(value):
        return _problem("text_control", f"{name} has unfit characters.", "Send plain text.", name)
    return None


def _session_id(name: str, value: Any) -> Problem | None:
    if value is None or (isinstance(value, str) and _CALL_ID.fullmatch(value)):
        return None
    says = f"{name} is not a text of 1 to 128 of A-Z a-z 0-9 _ . : -"
    return _problem("field_format", says, "Leave it out, or send that of an answer.", name)


def _wait_seconds(name: str, value: Any) -> Problem | None:
    if type(value) is int and 0 <= value <= WAIT_SECONDS_MAX:
        return None
    says = f"{name} is not a whole number from 0 to {WAIT_SECONDS_MAX}."
    return _problem("field_format", says, f"Send 0 to {WAIT_SECONDS_MAX}, or leave it out.", name)


_READ: Final = {
    "operation_id": _operation_id,
    "order_ref": _order_ref,
    "session_id": _session_id,
    "wait_seconds": _wait_seconds,
}


def _problem(code: str, detail: str, what_to_do: str, field: str | None) -> Problem:
    return {
        "code": code,
        "detail": detail,
        "what_to_do": what_to_do,
        "field": field,
        "next_action": "correct_and_repeat",
    }
