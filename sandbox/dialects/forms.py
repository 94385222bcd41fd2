"""Form fields with brackets, as Stripe's clients send them."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from sandbox.operations import Declined


def read_form(body: bytes) -> tuple[tuple[str, str], ...]:
    """The pairs of an `application/x-www-form-urlencoded` body, in their order."""
    try:
        return tuple(parse_qsl(body.decode("utf-8"), keep_blank_values=True))
    except UnicodeDecodeError as broken:
        raise Declined("body_invalid", "the body must be a UTF-8 form") from broken


def nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`metadata[a]=1` becomes `{"metadata": {"a": "1"}}`; one level is all that Stripe uses here."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        outer, bracket, rest = name.partition("[")
        if not bracket:
            fields[outer] = value
            continue
        inner = rest.removesuffix("]")
        group = fields.setdefault(outer, {})
        if not isinstance(group, dict) or not rest.endswith("]"):
            raise Declined("parameter_invalid", f"cannot read parameter {name!r}", param=name)
        group[inner] = value
    return fields
