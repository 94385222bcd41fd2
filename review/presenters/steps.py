"""What people did about a case, as entries of a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconciliation import choices
from review.presenters.facts import StepFacts
from review.presenters.trail import Entry
from review.presenters.words import actor_word

_STEPS = {
    "claimed": "Case claimed",
    "released": "Case given back",
    "taken_over": "Case taken over",
    "assigned": "Case assigned",
    "noted": "Note",
    "checked": "Asked to check now",
    "snoozed": "Case snoozed",
    "escalated": "Case escalated",
    "attached": "Statement attached",
    "ruled": "First signature",
    "signed": "Ruling in force",
    "declined": "Second signature declined",
    "voided": "First signature void",
    "lapsed": "First signature lapsed",
}


def steps(found: Sequence[StepFacts]) -> Iterator[Entry]:
    """What people and the machine did about a case, as entries of the timeline."""
    for each in found:
        if each.kind not in _STEPS:
            continue
        yield Entry(
            at=each.at,
            rank=4,
            title=_STEPS[each.kind],
            icon="k-person" if each.actor.startswith("person:") else "k-case",
            mark="person" if each.actor.startswith("person:") else "rule",
            by=f"by {actor_word(each.actor)}",
            text=_step_text(each.kind, each.detail),
        )


def _step_text(kind: str, detail: dict[str, Any]) -> str:
    if kind == "noted":
        return str(detail.get("text", ""))
    if kind == "attached":
        return f"{detail.get('name')}, SHA-256 {str(detail.get('sha256'))[:16]}…"
    if kind == "assigned":
        return f"To {detail.get('to')}."
    if kind == "ruled":
        title = choices.TITLES.get(str(detail.get("choice")), "")
        return f"{title}: “{detail.get('reason')}”"
    said = str(detail.get("reason") or detail.get("because") or "")
    before = f" {detail['before']} held it." if detail.get("before") else ""
    return (f"“{said}”" if said else "") + before
