"""Facts beside facts: the agent's text and our record; then, and now, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from refunds.domain.money import display
from review.presenters.facts import MoveFacts, OperationFacts, RefundFacts
from review.presenters.words import actor_word, count_of, field_word, short, state_word

# The agent's text beside our record

# What an agent may call a fact -> the field of our record.
_CLAIMED = {
    "order_total_minor": "captured_minor",
    "captured_minor": "captured_minor",
    "paid_minor": "captured_minor",
    "refunded_minor": "refunded_minor",
    "already_refunded_minor": "refunded_minor",
    "held_minor": "held_minor",
    "refundable_minor": "available_minor",
    "available_minor": "available_minor",
    "amount_minor": "amount_minor",
    "currency": "currency",
    "customer_ref": "customer_ref",
    "return_state": "return_state",
    "fulfilment_state": "fulfilment_state",
    "order_version": "order_version",
    "payment_ref": "payment_ref",
    "payment_state": "payment_state",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One statement of the agent: `verdict` is match, differs or not comparable."""

    label: str
    claimed: str
    ours: str
    verdict: str


def claim_rows(claims: Mapping[str, Any], ours: Mapping[str, Any], currency: str) -> list[ClaimRow]:
    """The agent's claims, each beside the fact of our record that it is about, if there is one."""
    rows = []
    for name, claimed in claims.items():
        field = _CLAIMED.get(name)
        known = ours.get(field) if field else None
        rows.append(
            ClaimRow(
                label=field_word(name),
                claimed=_value(name, claimed, currency),
                ours=_value(field or "", known, currency) if field else "no record of this",
                verdict="missing" if field is None else "match" if claimed == known else "differs",
            )
        )
    return rows


def differing(rows: Iterable[ClaimRow]) -> list[str]:
    """MC-09 for each claim that our record contradicts."""
    return [
        f"The agent states {row.claimed}; our order record says {row.ours}."
        for row in rows
        if row.verdict == "differs"
    ]


def _value(name: str, value: Any, currency: str) -> str:
    if value is None or value == "":
        return "nothing"
    if name.endswith("_minor") and isinstance(value, int) and not isinstance(value, bool):
        return display(value, currency)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return state_word(str(value)) if name.endswith("_state") else str(value)


# What changed since the last approval


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One fact that moved: then, now, and what follows from it."""

    label: str
    then: str
    now: str
    effect: str
    blocks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRow:
    """One change of the order since then: what, by whom, how much, when; `ours` with its id."""

    version: int
    what: str
    who: str
    amount_minor: int | None
    operation_id: str
    ref: str
    move: MoveFacts


def diff_rows(
    then: Mapping[str, Any], now: Mapping[str, Any], op: OperationFacts
) -> tuple[list[DiffRow], list[str]]:
    """(changed rows, labels of the facts that did not change)."""
    changed, same = [], []
    for name, value in now.items():
        if name == "order_version":
            continue
        if then.get(name) == value:
            same.append(field_word(name).lower())
            continue
        effect, blocks = _effect(name, value, op)
        changed.append(
            DiffRow(
                label=field_word(name),
                then=_value(name, then.get(name), op.currency),
                now=_value(name, value, op.currency),
                effect=effect,
                blocks=blocks,
            )
        )
    return changed, same


def _effect(name: str, now: Any, op: OperationFacts) -> tuple[str, bool]:
    if name == "available_minor":
        if now < op.amount_minor:
            asked = display(op.amount_minor, op.currency)
            return f"Less than the {asked} asked for. Cannot be approved as it stands", True
        return "Still enough for this refund", False
    if name in ("captured_minor", "refunded_minor", "held_minor"):
        return "See the changes below", False
    if name == "payment_state" and now != "captured":
        return "Nothing can be refunded on this payment now", True
    if name in ("frozen", "payment_halted") and now:
        return "Nothing can be sent until a person lifts it", True
    return "Information; no check depends on it", False


_MOVE_WORDS = {
    "first_seen": "order first seen",
    "feed": "the order’s facts changed",
    "reserved": "set aside when sending started",
    "released": "given back",
    "external": "a refund made elsewhere was seen",
    "taken_back": "a refund came back",
    "contradicted": "held again: evidence says that money moved",
    "difference": "a difference was booked",
    "dispute": "a dispute changed",
    "capture_reversed": "the capture was reversed",
    "frozen": "refunds were frozen",
    "unfrozen": "the freeze was lifted",
}


def move_rows(
    moves: Iterable[MoveFacts], refunds: Iterable[RefundFacts], currency: str
) -> list[MoveRow]:
    """Every change of the order since the approval, net-zero ones too; ours marked as ours."""
    by_ref = {each.ref: each for each in refunds}
    rows = []
    for each in moves:
        refs = [ref for ref in each.detail.get("external", []) if ref in by_ref]
        amount = each.amount_minor
        if amount is None and refs:
            amount = sum(by_ref[ref].amount_minor for ref in refs)
        rows.append(
            MoveRow(
                version=each.version,
                what=_what(each, currency),
                who=actor_word(each.actor),
                amount_minor=amount,
                operation_id=str(each.operation_id or ""),
                ref=", ".join(refs),
                move=each,
            )
        )
    return rows


def _what(each: MoveFacts, currency: str) -> str:
    words = _MOVE_WORDS.get(each.cause, state_word(each.cause))
    fields = [
        f"{_label(name)} {_value(name, old, currency)} → {_value(name, new, currency)}"
        for name, (old, new) in _pairs(each.detail)
    ]
    if each.detail.get("reason"):
        words = f"{words}: “{each.detail['reason']}”"
    if each.operation_id is not None:
        words = f"{words}, for our own refund {short(each.operation_id)}"
    return f"{words}: {'; '.join(fields)}" if fields else words


def _label(name: str) -> str:
    return name.removesuffix("_minor").replace("_", " ")


def _pairs(detail: Mapping[str, Any]) -> list[tuple[str, tuple[Any, Any]]]:
    return [
        (name, (value[0], value[1]))
        for name, value in detail.items()
        if name != "external" and isinstance(value, list) and len(value) == 2
    ]


def unchanged_line(same: list[str]) -> str:
    return f"{count_of(len(same), 'fact')} unchanged: {', '.join(same)}" if same else ""
