"""JSON from outside, read so that no float, no repeated name and no bomb gets in. Pure.

Numbers with a fraction and numbers too long to be an amount become `Unfit`, because only the
walk afterwards knows their place; nothing of that kind is left in what `read_json` returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from refunds.domain.errors import Refusal

DEPTH_MAX = 20
DIGITS_MAX = 18
PATH_MAX = 200


@dataclass(frozen=True, slots=True)
class Unfit:
    """A JSON number that is not a whole number of at most 18 digits."""

    text: str
    fraction: bool


def read_json(raw: bytes) -> Any:
    """The value of one JSON text.

    Raises Refusal: malformed_json and too_deep (400), amount_fraction, amount_too_large,
    field_format, text_control (422, with the path of the field).
    """
    try:
        tree = json.loads(
            raw.decode(),
            parse_float=lambda text: Unfit(text, fraction=True),
            parse_int=_whole,
            parse_constant=_not_a_number,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError:
        raise malformed("The text is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise malformed(f"{error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _too_deep() from None
    for path, value, depth in _walk(tree):
        _check(path, value, depth)
    return tree


def malformed(detail: str) -> Refusal:
    """400 malformed_json with this detail."""
    return Refusal(
        "malformed_json",
        detail,
        status=400,
        what_to_do="Send one JSON object, UTF-8, each name once.",
    )


def _too_deep() -> Refusal:
    return Refusal(
        "too_deep",
        f"The JSON is nested deeper than {DEPTH_MAX} levels.",
        status=400,
        what_to_do="Send the flat fields of the documentation; claims hold a few values.",
    )


def _whole(text: str) -> int | Unfit:
    return int(text) if len(text) <= DIGITS_MAX else Unfit(text, fraction=False)


def _not_a_number(text: str) -> NoReturn:
    raise malformed(f"{text} is not JSON.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise malformed(f"The name {twice[:60]!r} stands twice in one object.")
    return found


def _walk(tree: Any) -> Iterator[tuple[str, Any, int]]:
    """Every value with its dotted path and depth, in the order of the text; names as values too."""
    left = [("", tree, 1)]
    while left:
        path, value, depth = left.pop()
        yield path, value, depth
        if isinstance(value, dict):
            inner = []
            for name, item in value.items():
                yield path, name, depth
                inner.append((_below(path, name), item, depth + 1))
            left.extend(reversed(inner))
        elif isinstance(value, list):
            inner = [(_below(path, str(n)), item, depth + 1) for n, item in enumerate(value)]
            left.extend(reversed(inner))


def _below(path: str, name: str) -> str:
    # Cut at every level: a long name over many items must not become many long paths.
    return (f"{path}.{name}" if path else name)[:PATH_MAX]


def _check(path: str, value: Any, depth: int) -> None:
    if isinstance(value, dict | list):
        if depth > DEPTH_MAX:
            raise _too_deep()
    elif isinstance(value, str):
        _check_characters(path, value)
    elif isinstance(value, Unfit):
        raise _unfit(path, value)


def _check_characters(path: str, text: str) -> None:
    if "\0" in text:
        raise Refusal(
            "text_control",
            f"{path or 'The text'} has a NUL character.",
            what_to_do="Send plain text.",
            field=path or None,
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise malformed("Half of a surrogate pair stands alone.") from None


def _unfit(path: str, number: Unfit) -> Refusal:
    minor = path.rsplit(".", 1)[-1].endswith("_minor")
    shown = number.text[:40]
    if minor and number.fraction:
        return Refusal(
            "amount_fraction",
            f"{path}: {shown} is not a whole number of minor units.",
            what_to_do="Send a whole number such as 7900"
            + (', or `amount` as text such as "79.00".' if path == "amount_minor" else "."),
            field=path,
        )
    if minor:
        return Refusal(
            "amount_too_large",
            f"{path}: {shown} has more than {DIGITS_MAX} digits.",
            what_to_do="Check the amount.",
            field=path,
        )
    if path == "amount":
        return Refusal(
            "amount_format",
            f"amount: {shown} is a JSON number.",
            what_to_do='Send it as text, such as "79.00", or send amount_minor.',
            field=path,
        )
    return Refusal(
        "field_format",
        f"{path or 'The body'}: {shown} is not a whole number of at most {DIGITS_MAX} digits.",
        what_to_do="Send whole numbers; send other figures as text.",
        field=path or None,
    )
