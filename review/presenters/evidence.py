"""The provider's record beside ours, field by field, with a word for each comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from refunds.domain.contract import quiet_until
from refunds.domain.errors import Refusal
from refunds.domain.limits import Limits
from refunds.domain.money import display
from refunds.domain.states import UNCERTAIN
from review.presenters.facts import EvidenceFacts
from review.presenters.timeline import VERDICTS
from review.presenters.trail import Trail
from review.presenters.words import Clock, count_of, short

# verdict of a field -> (icon, word)
MARKS = {
    "match": ("v-match", "match"),
    "differs": ("v-differs", "differs"),
    "missing": ("v-missing", "missing"),
    "": ("v-dash", "not comparable"),
}
_HEADS = {
    "match": ("succeeded", "v-match", "Match: the provider holds this refund"),
    "differs": ("mismatched", "v-differs", "Differs: it is ours, but not as we asked"),
    "duplicate": ("failed", "s-failed", "More than one refund of this operation"),
    "absent": ("pending", "v-missing", "No record of ours"),
    "refused": ("failed", "s-failed", "Refused: the provider says no money moved"),
    "not_executed": ("pending", "v-missing", "Not executed"),
    "cannot_tell": ("unknown", "s-unknown", "Cannot tell"),
    "told": ("unknown", "s-unknown", "Told by the provider: only a lookup decides"),
}
_CANDIDATES_MAX = 5
_TABS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One line of the comparison; `verdict` is a key of MARKS."""

    name: str
    ours: str
    theirs: str
    verdict: str

    @property
    def icon(self) -> str:
        return MARKS[self.verdict][0]

    @property
    def word(self) -> str:
        return MARKS[self.verdict][1]

    @property
    def hot(self) -> bool:
        return self.verdict in ("differs", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of the provider compared with ours."""

    title: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    label: str
    id: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What the evidence says. `state` colours the head; `empty` says why there is none."""

    empty: str = ""
    state: str = "unknown"
    shape: str = "s-unknown"
    head: str = ""
    because: str = ""
    note: str = ""
    age: str = ""
    tabs: tuple[Tab, ...] = ()
    records: tuple[Record, ...] = ()


def panel(trail: Trail, chosen: int | None, limits: Limits, clock: Clock) -> Panel:
    """The chosen evidence item, or else the newest lookup, or else the newest of any kind."""
    items = list(trail.evidence)
    shown = next((each for each in items if each.id == chosen), None)
    if shown is None and items:
        shown = max(items, key=lambda each: (each.kind == "lookup", each.id))
    if shown is None:
        return Panel(empty=_nothing_yet(trail, clock))
    verdict = _verdict(shown)
    state, shape, head = _HEADS[verdict]
    return Panel(
        state=state,
        shape=shape,
        head=head,
        because=str(shown.facts.get("because") or ""),
        note=_note(trail, shown, verdict, limits, clock),
        age=f"{_name(shown)}, {clock.seconds(shown.stored_at)}, {clock.ago(shown.stored_at)}",
        tabs=_tabs(items, shown),
        records=_records(trail, shown, verdict, clock),
    )


def _nothing_yet(trail: Trail, clock: Clock) -> str:
    op = trail.op
    if not trail.attempts:
        return "Nothing was sent, so the provider was not asked about it."
    if op.contract is not None and op.contract.lookup == "none":
        return "This account has no lookup: the provider cannot be asked about this refund."
    when = f" Next automatic check at {clock.seconds(op.due_at)}." if op.due_at else ""
    return f"We have not yet asked the provider about this refund.{when}"


def _verdict(shown: EvidenceFacts) -> str:
    if shown.kind == "lookup":
        said = str(shown.facts.get("verdict"))
        return said if said in VERDICTS else "cannot_tell"
    if shown.kind == "notice":
        said = str(shown.facts.get("verdict"))
        return said if shown.facts.get("is_proof") and said in VERDICTS else "told"
    outcome = shown.facts.get("outcome")
    if outcome in ("confirmed", "accepted"):
        return "match"
    if outcome == "refused":
        return "refused"
    return "not_executed" if outcome in ("turned_away", "not_sent") else "cannot_tell"


def _name(shown: EvidenceFacts) -> str:
    if shown.kind == "lookup":
        return f"Lookup {shown.lookup_no}"
    return f"Answer {shown.attempt_no}" if shown.kind == "answer" else "Notice"


def _tabs(items: list[EvidenceFacts], shown: EvidenceFacts) -> tuple[Tab, ...]:
    newest = sorted(items, key=lambda each: -each.id)[:_TABS_MAX]
    if shown not in newest:
        newest.append(shown)
    return tuple(Tab(label=_name(each), id=each.id, current=each.id == shown.id) for each in newest)


def _note(trail: Trail, shown: EvidenceFacts, verdict: str, limits: Limits, clock: Clock) -> str:
    facts, op = shown.facts, trail.op
    if shown.kind == "notice":
        return f"Signed by the provider under the id {facts.get('event_id')}."
    if shown.kind == "answer" and verdict == "cannot_tell":
        code = facts.get("status")
        asked = f"The provider answered HTTP {code}, which settles nothing." if code else ""
        return f"{asked} That is not the same as ‘no record’.".strip()
    if verdict == "cannot_tell":
        return "That is not the same as ‘no record’."
    if verdict == "absent" and shown.kind == "lookup" and op.state in UNCERTAIN:
        return _too_early(trail, limits, clock)
    if shown.kind == "lookup":
        pages = facts.get("pages")
        whole = "complete" if facts.get("complete") else "not complete"
        method = str(facts.get("method") or "lookup")
        return f"Method: {method}, {whole}, {count_of(int(pages or 0), 'page')}."
    return ""


def _too_early(trail: Trail, limits: Limits, clock: Clock) -> str:
    op = trail.op
    if op.contract is None:
        return f"{op.account} is no longer configured."
    until = quiet_until(
        op.contract,
        [
            (each.stop_proof_at or each.send_deadline, each.stop_proof_at is not None)
            for each in trail.attempts
        ],
        limits.skew_seconds,
    )
    if until is None:
        return (
            f"{op.account} states no time after which a refund is certain to show:"
            " ‘no record’ never proves that it did not happen."
        )
    if until > clock.now:
        return (
            f"No record yet. {op.account} can still show it until {clock.seconds(until)}."
            " Until then ‘did not happen’ cannot be recorded."
        )
    return f"The time in which {op.account} could still show it ended {clock.ago(until)}."


def _records(trail: Trail, shown: EvidenceFacts, verdict: str, clock: Clock) -> tuple[Record, ...]:
    if shown.kind == "answer":
        facts = shown.facts
        if not facts.get("ref"):
            return ()
        return (_record(trail, facts, _compared(trail, facts), "What the answer said", clock),)
    found = shown.facts.get("candidates") or []
    ordered = sorted(found, key=lambda each: not each.get("ours"))[:_CANDIDATES_MAX]
    if not ordered:
        absent = {"marker": "missing", "payment": "missing", "amount": "missing"}
        blank = _record(trail, {}, absent, "No record was shown", clock)
        return (blank,) if verdict == "absent" else ()
    return tuple(
        _record(
            trail,
            each,
            each.get("fields") or {},
            f"Record {number} of {len(found)}{'' if each.get('ours') else ', not ours'}",
            clock,
        )
        for number, each in enumerate(ordered, 1)
    )


def _compared(trail: Trail, facts: Mapping[str, Any]) -> dict[str, str]:
    op = trail.op
    pairs = {
        "marker": (facts.get("marker"), str(op.id)),
        "payment": (facts.get("payment_ref"), op.payment_ref),
        "amount": (facts.get("amount_minor"), op.amount_minor),
        "currency": (facts.get("currency"), op.currency),
    }
    return {
        name: "missing" if theirs is None else "match" if theirs == ours else "differs"
        for name, (theirs, ours) in pairs.items()
    }


def _record(
    trail: Trail,
    theirs: Mapping[str, Any],
    verdicts: Mapping[str, str],
    title: str,
    clock: Clock,
) -> Record:
    op = trail.op
    sent = trail.attempts[0].first_byte_at if trail.attempts else None
    ref = str(theirs.get("ref") or "none")
    if trail.booked_ref == ref:
        verdicts = {**verdicts, "refund ref": "match"}
    rows = [
        ("marker", short(op.id), _marker(theirs.get("marker"), str(op.id))),
        ("refund ref", trail.booked_ref, ref),
        ("payment", op.payment_ref, str(theirs.get("payment_ref") or "none")),
        ("amount", display(op.amount_minor, op.currency), _amount(theirs)),
        ("currency", op.currency, str(theirs.get("currency") or "none")),
        ("provider_status", "theirs alone", str(theirs.get("provider_status") or "none")),
        # It matches when it is no earlier than our sending, so that is what ours says.
        ("created", f"sent {clock.dated(sent)}, or later" if sent else "", _created(theirs, clock)),
    ]
    return Record(
        title=title,
        fields=tuple(
            Field(name=name, ours=ours or "none known", theirs=seen, verdict=_mark(verdicts, name))
            for name, ours, seen in rows
        ),
    )


def _mark(verdicts: Mapping[str, str], name: str) -> str:
    said = verdicts.get(name, "")
    return said if said in MARKS else ""


def _marker(theirs: object, ours: str) -> str:
    if theirs is None:
        return "none"
    return short(theirs) if str(theirs) == ours else str(theirs)


def _created(theirs: Mapping[str, Any], clock: Clock) -> str:
    said = theirs.get("created_at")
    if not isinstance(said, str):
        return "none"
    try:
        return clock.seconds(datetime.fromisoformat(said))
    except ValueError:
        return said


def _amount(theirs: Mapping[str, Any]) -> str:
    minor, currency = theirs.get("amount_minor"), theirs.get("currency")
    if not isinstance(minor, int):
        return "none"
    try:
        return display(minor, str(currency))
    except Refusal:  # a word of theirs that is no ISO currency: shown as it came
        return f"{minor} minor units of {currency or 'no currency'}"
