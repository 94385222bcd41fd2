"""Why each version of an order came to be: the cause in words, and what was and is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from refunds.domain.money import display
from review.presenters.facts import MoveFacts
from review.presenters.words import actor_word, field_word, short, state_word

# {op}: our own operation; {amount}: what the move is about.
_WORDS = {
    "first_seen": "Order first seen",
    "feed": "The order’s facts changed",
    "reserved": "{amount} set aside for {op} when sending started",
    "released": "{amount} given back by {op}: it is not being sent",
    "external": "A refund made elsewhere was seen",
    "taken_back": "{amount} of {op} came back",
    "contradicted": "{amount} held again for {op}: evidence says that money moved",
    "difference": "{op}: the provider’s figure was booked in place of the fed one",
    "dispute": "A dispute changed",
    "capture_reversed": "The capture was reversed",
    "frozen": "Refunds of this order were frozen",
    "unfrozen": "The freeze was lifted",
}
# What our own move does to the held amount.
_HELD = {"reserved": "more", "contradicted": "more", "released": "less"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One fact of a version: `was` is empty where only the difference is known."""

    label: str
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the order, with what caused it."""

    move: MoveFacts
    what: str
    who: str
    because: str
    changes: tuple[Change, ...]
    refs: tuple[str, ...]


def versions(
    moves: Iterable[MoveFacts], currency: str, elsewhere: Mapping[str, int]
) -> list[Version]:
    """The versions in the order given; amounts in `currency`, the order's own.

    `elsewhere`: what is known of refunds made elsewhere, minor units by their reference.
    """
    return [_version(each, currency, elsewhere) for each in moves]


def _version(move: MoveFacts, currency: str, elsewhere: Mapping[str, int]) -> Version:
    changes = _changes(move, currency)
    amount_minor = move.amount_minor
    known = [elsewhere[ref] for ref in _refs(move.detail) if ref in elsewhere]
    if amount_minor is None and known:
        amount_minor = sum(known)
    return Version(
        move=move,
        what=_what(move, changes, amount_minor, currency),
        who=actor_word(move.actor),
        because=str(move.detail.get("reason") or ""),
        changes=changes,
        refs=_refs(move.detail),
    )


def _what(
    move: MoveFacts, changes: tuple[Change, ...], amount_minor: int | None, currency: str
) -> str:
    if move.cause == "feed" and len(changes) == 1 and changes[0].was:
        one = changes[0]
        return f"{one.label}: {one.was} became {one.now}"
    amount = "" if amount_minor is None else display(amount_minor, currency)
    op = short(move.operation_id) if move.operation_id else "a refund made elsewhere"
    words = _WORDS.get(move.cause, state_word(move.cause).capitalize())
    text = words.format(op=op, amount=amount)
    if move.cause == "external" and amount:
        return f"{text}: {amount}"
    return text


def _changes(move: MoveFacts, currency: str) -> tuple[Change, ...]:
    found = [
        Change(
            label=_label(name),
            was=_value(name, value[0], currency),
            now=_value(name, value[1], currency),
        )
        for name, value in move.detail.items()
        if name != "external" and isinstance(value, list) and len(value) == 2
    ]
    if move.amount_minor is not None and move.cause in _HELD:
        amount = display(move.amount_minor, currency)
        found.append(Change(label="Held", was="", now=f"{amount} {_HELD[move.cause]}"))
    return tuple(found)


def _label(name: str) -> str:
    """ "return_state" -> "Return", "pi_1 captured_minor" -> "pi_1 captured"."""
    ref, space, fact = name.rpartition(" ")
    if ref == "payment":
        return f"Payment {fact}"
    if space:
        return f"Payment {ref}: {field_word(fact).lower()}"
    return field_word(name.removesuffix("_state").removesuffix("_ref"))


def _value(name: str, value: Any, currency: str) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, int) and (name.endswith("_minor") or name.startswith("payment ")):
        return display(value, currency)
    return state_word(str(value)) if name.endswith("state") else str(value)


def _refs(detail: Mapping[str, Any]) -> tuple[str, ...]:
    """Provider refunds that the move names."""
    named = [*detail.get("external", []), detail.get("ref")]
    return tuple(str(each) for each in named if each)
