"""What somebody saw beside what there is now, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refunds.domain.errors import Refusal
from refunds.domain.money import display
from review.presenters.words import count_of, state_word

# Of a refund that the provider shows: what a decision rests on, in words.
_FIELDS = {
    "amount": "amount",
    "provider_status": "status",
    "payment_ref": "payment",
    "ours": "whose",
}
MONEY = {
    "captured_minor": "captured",
    "refunded_minor": "refunded",
    "held_minor": "held",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field, as it was seen and as it is now."""

    name: str
    then: str
    now: str

    @property
    def moved(self) -> bool:
        return self.then != self.now


def stated(amount_minor: int | None, currency: str | None) -> str:
    """An amount as a provider states it."""
    if amount_minor is None or currency is None:
        return "no amount"
    try:
        return display(amount_minor, currency)
    except Refusal:  # a word of theirs that is no ISO currency
        return f"{amount_minor} minor units of {currency}"


def evidence_rows(then: dict[str, Any], now: dict[str, Any]) -> list[Row]:
    """Two states of `Gathered.shown`, every field; what moved first."""
    rows = [
        Row(name="state", then=_state(then), now=_state(now)),
        *_lookup_rows(then, now),
        _count_row("answers and notices", "answer or notice", then, now, "evidence"),
        _count_row("statements", "statement", then, now, "statements"),
        Row(name="reasons of the case", then=_reasons(then), now=_reasons(now)),
    ]
    return sorted(rows, key=lambda row: not row.moved)


def money_rows(then: dict[str, int], now: dict[str, int], currency: str) -> list[Row]:
    """The payment's money and the order's version, as the consequence speaks of them."""
    rows = [
        Row(name=word, then=display(then[name], currency), now=display(now[name], currency))
        for name, word in MONEY.items()
        if currency and name in then and name in now
    ]
    versions = [str(each.get("order_version", "")) for each in (then, now)]
    return [*rows, Row(name="version of the order", then=versions[0], now=versions[1])]


def _state(shown: dict[str, Any]) -> str:
    about = shown.get("operation") or shown.get("payment") or [""]
    return state_word(str(about[-1]))


def _reasons(shown: dict[str, Any]) -> str:
    return ", ".join(map(state_word, shown.get("reasons", [])))


def _count_row(name: str, one: str, then: dict[str, Any], now: dict[str, Any], key: str) -> Row:
    """Pieces by how many; the same number of others is said too."""
    before, after = then.get(key, []), now.get(key, [])
    new = [each for each in after if each not in before]
    said = count_of(len(after), one)
    if len(before) == len(after) and new:
        said += f", {len(new)} of them new"
    return Row(name=name, then=count_of(len(before), one), now=said)


def _lookup_rows(then: dict[str, Any], now: dict[str, Any]) -> Iterator[Row]:
    if "refunds" in now:
        yield from _known_rows(then, now)
        return
    before, after = then.get("lookup") or {}, now.get("lookup") or {}
    yield Row(name="what the provider shows", then=_verdict(before), now=_verdict(after))
    old, new = _by_ref(before), _by_ref(after)
    for ref in dict.fromkeys([*old, *new]):
        yield from _refund_rows(ref, old.get(ref), new.get(ref))


def _verdict(lookup: dict[str, Any]) -> str:
    return state_word(str(lookup.get("verdict") or "not asked"))


def _by_ref(lookup: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {str(each.get("ref")): _said(each) for each in lookup.get("candidates", [])}


def _said(candidate: dict[str, Any]) -> dict[str, str]:
    """Each field of a refund in words; amounts as the provider states them."""
    return {
        "amount": stated(candidate.get("amount_minor"), candidate.get("currency")),
        "provider_status": state_word(str(candidate.get("provider_status"))),
        "payment_ref": str(candidate.get("payment_ref")),
        "ours": "ours" if candidate.get("ours") else "of other origin",
    }


def _refund_rows(ref: str, old: dict[str, str] | None, new: dict[str, str] | None) -> Iterator[Row]:
    """One row where it came, went or stayed; one for each field that differs."""
    if old is None or new is None or old == new:
        yield Row(name=f"refund {ref}", then=_whole(old), now=_whole(new))
        return
    for name, word in _FIELDS.items():
        if old[name] != new[name]:
            yield Row(name=f"{word} of {ref}", then=old[name], now=new[name])


def _whole(said: dict[str, str] | None) -> str:
    return ", ".join(said[name] for name in _FIELDS) if said else "not shown"


def _known_rows(then: dict[str, Any], now: dict[str, Any]) -> Iterator[Row]:
    """Of a case about a payment: the refunds that are known on it, by reference."""
    old = {str(each[0]): each for each in then.get("refunds", [])}
    new = {str(each[0]): each for each in now.get("refunds", [])}
    for ref in dict.fromkeys([*old, *new]):
        yield Row(name=f"refund {ref}", then=_known(old.get(ref)), now=_known(new.get(ref)))


def _known(row: list[Any] | None) -> str:
    if row is None:
        return "not known"
    counts = "counts" if row[3] else "does not count"
    return f"{row[1]} minor units, {state_word(str(row[2]))}, {counts}"
