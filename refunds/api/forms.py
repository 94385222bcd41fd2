"""What is wrong with a field, and the form it may have, said from the shape that it belongs to. Pure.

Nothing of the validating library's own words reaches a caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from refunds.api.fields import CALL_ID, OPERATION_ID_SCHEMA
from refunds.api.parsing import malformed
from refunds.api.schemas import PAGE_MAX, WAIT_SECONDS_MAX, OrderIn, ProposalIn, WithdrawalIn
from refunds.domain.errors import Refusal

Schema = Mapping[str, Any]

# The shapes of the bodies by the name that the door's views give them.
_BODIES: Final[dict[str, type[BaseModel]]] = {
    "proposal": ProposalIn,
    "withdrawal": WithdrawalIn,
    "order": OrderIn,
}
# Those of addresses and queries.
_PARAMETERS: Final[dict[str, Schema]] = {
    "operation_id": OPERATION_ID_SCHEMA,
    "after": OPERATION_ID_SCHEMA,
    "limit": {"type": "integer", "minimum": 1, "maximum": PAGE_MAX},
    "wait_seconds": {"type": "integer", "minimum": 0, "maximum": WAIT_SECONDS_MAX},
    "session_id": {"type": "string", "pattern": CALL_ID},
}
_PATTERNS: Final = {
    CALL_ID: "1 to 128 of A-Z a-z 0-9 _ . : -",
    r"^https://[^\s]+$": "an https address without spaces, of at most 500 characters",
}
_FORMATS: Final = {
    "uuid": 'an operation_id of an earlier answer, such as "0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a"',
    "date-time": 'an instant with a zone, such as "2026-11-29T14:02:03Z"',
}
_CODE_OF_TYPE: Final = {
    "extra_forbidden": "field_unknown",
    "missing": "field_missing",
    "string_too_long": "text_too_long",
    "datetime_naive": "datetime_naive",
}
_CODE_OF_AMOUNT: Final = {
    "greater_than_equal": "amount_negative",
    "less_than_equal": "amount_too_large",
}


def from_validation(
    errors: Sequence[Mapping[str, Any]], shape: type[BaseModel] | None = None
) -> Refusal:
    """The first error of a validation, as one of our codes.

    `errors` as ninja lists them: `loc` begins with the source, and for bodies with the parameter.
    `shape` is the body's, where the parameter's name does not say it.
    """
    error = errors[0]
    source, *path = (str(part) for part in error["loc"])
    if source == "body":
        shape = shape or _BODIES[path[0]]
        path = path[1:]
        if not path:
            return malformed("The body is not a JSON object.")
    field = ".".join(path)[:200]
    code = _code(field, str(error["type"]))
    whole = shape.model_json_schema() if shape else {"properties": _PARAMETERS}
    detail, what_to_do = _words(error, code, field, path, whole)
    return Refusal(code, detail, what_to_do=what_to_do, field=field)


def _code(field: str, kind: str) -> str:
    if kind in _CODE_OF_TYPE:
        return _CODE_OF_TYPE[kind]
    if field == "amount" or field.endswith("_minor"):
        return _CODE_OF_AMOUNT.get(kind, "amount_format")
    return "field_format"


def _words(
    error: Mapping[str, Any], code: str, field: str, path: Sequence[str], whole: Schema
) -> tuple[str, str]:
    """What is wrong, and what to do."""
    if code == "field_unknown":
        known = ", ".join(_at(path[:-1], whole).get("properties", {}))
        return f"{field}: there is no such field here.", f"Leave it out. The fields are: {known}."
    form = _form(_at(path, whole), whole)
    if code == "field_missing":
        return f"{field} is missing.", f"Send {form}."
    if code == "text_too_long":
        most = error["ctx"]["max_length"]
        return (
            f"{field} has more than {most} characters.",
            "Shorten it; put the long form into the ticket.",
        )
    if code == "datetime_naive":
        return f"{field} {error['msg']}."[:300], f"Send {_FORMATS['date-time']}."
    if field in ("amount", "amount_minor"):
        form = '`amount` as text ("79.00"), or `amount_minor` as a whole number (7900)'
    return f"{field} is not {form}.", f"Send {form}."


def _at(path: Sequence[str], whole: Schema) -> Schema:
    """The schema of the field at this path; an empty one where the shape leaves it open."""
    here = whole
    for part in path:
        here = _plain(here, whole)
        here = here.get("properties", {}).get(part) or here.get("items") or {}
    return _plain(here, whole)


def _plain(schema: Schema, whole: Schema) -> Schema:
    """Without "or null", and with what it points at."""
    for each in schema.get("anyOf", ()):
        if each.get("type") != "null":
            schema = each
    if "$ref" in schema:
        found: Schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def _form(schema: Schema, whole: Schema) -> str:
    """The allowed form in words that finish "Send ..."."""
    if "enum" in schema:
        return f"one of: {', '.join(schema['enum'])}"
    if "example" in schema:
        return json.dumps(schema["example"])
    kind = schema.get("type")
    if kind == "integer":
        return f"a whole number{_bounds(schema, 'minimum', 'maximum')}"
    if kind == "array":
        inner = _form(_plain(schema.get("items", {}), whole), whole)
        return f"a list{_bounds(schema, 'minItems', 'maxItems')}, each item {inner}"
    if kind == "object":
        names = ", ".join(schema.get("properties", {}))
        return f"an object with the fields {names}" if names else "an object of names and values"
    if kind == "string":
        return _text_form(schema)
    return "a value of JSON"


def _text_form(schema: Schema) -> str:
    if schema.get("pattern") in _PATTERNS:
        return _PATTERNS[schema["pattern"]]
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    return f"text{_bounds(schema, 'minLength', 'maxLength', ' characters')}"


def _bounds(schema: Schema, least: str, most: str, unit: str = "") -> str:
    """ " from 0 to 25", " of 1 to 128 characters", " of at most 20", or nothing."""
    low, high = schema.get(least), schema.get(most)
    if high is None:
        return "" if low is None else f" of at least {low}{unit}"
    if low is None:
        return f" of at most {high}{unit}"
    return f" from {low} to {high}" if least == "minimum" else f" of {low} to {high}{unit}"
