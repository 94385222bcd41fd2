"""What a timeline is made of: moves of the operation and the approvals that caused none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from refunds.domain.judging import tier_words
from refunds.domain.money import display
from review.presenters.facts import (
    ApprovalFacts,
    AttemptFacts,
    CaseFacts,
    EventFacts,
    EvidenceFacts,
    OperationFacts,
    RemedyFacts,
    StepFacts,
)
from review.presenters.sentences import stale_words
from review.presenters.words import Clock, actor_word, short, state_word


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the timeline. `kind` is day, gap or entry; `at` orders it, `rank` breaks ties."""

    at: datetime
    rank: int
    title: str
    kind: str = "entry"
    icon: str = "k-rule"
    mark: str = "rule"
    state: str = ""
    by: str = ""
    text: str = ""
    meta: str = ""
    same_as: str = ""
    parts: tuple[str, ...] = ()
    anchor: str = ""
    time: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """Everything a timeline is made of."""

    op: OperationFacts
    events: tuple[EventFacts, ...]
    attempts: tuple[AttemptFacts, ...]
    evidence: tuple[EvidenceFacts, ...]
    cases: tuple[CaseFacts, ...]
    approvals: tuple[ApprovalFacts, ...]
    booked_ref: str
    steps: tuple[StepFacts, ...] = ()
    remedies: tuple[RemedyFacts, ...] = ()

    def attempt(self, no: int | None) -> AttemptFacts | None:
        return next((each for each in self.attempts if each.no == no), None)


def events(trail: Trail, clock: Clock) -> Iterator[Entry]:
    for event in trail.events:
        yield _event(trail, event, clock)


def _event(trail: Trail, event: EventFacts, clock: Clock) -> Entry:
    op = trail.op
    entry = Entry(
        at=event.at,
        rank=3,
        title=_TITLES.get(event.event, state_word(event.event).capitalize()),
        by=f"by {actor_word(event.actor)}",
        anchor=f"event-{event.seq}",
        text=str(event.detail.get("because", "")),
    )
    match event.event:
        case "proposed":
            return _proposed(op, event, entry)
        case "policy_held" | "policy_denied" | "policy_cleared":
            failed = ", ".join(event.detail.get("failed", []))
            text = f"Refused: {failed}." if failed else f"tier {op.tier}: {tier_words(op.tier)}."
            return replace(entry, rank=1, by="", text=text)
        case "approved":
            return _approved(trail, event, entry, clock)
        case "rejected" | "withdrawn" | "approval_revoked":
            reason = event.detail.get("reason", "")
            icon = "k-agent" if event.actor.startswith("agent:") else "k-person"
            return replace(entry, icon=icon, mark="person", text=f"“{reason}”" if reason else "")
        case "approval_lapsed":
            cause = event.detail.get("cause", "")
            return replace(entry, icon="s-stale", text=f"Cause: {stale_words(cause)}.")
        case "submission_started" | "resubmitted":
            return _sent(trail, event, entry)
        case "unanswered" | "lease_ended" | "contradicted" | "ruling_contradicted":
            held = f"It may or may not have happened. The {_amount(op)} stay held."
            return replace(entry, icon="s-unknown", mark="rule unk", by="", text=held)
    if event.to_state in _WITH_A_SHAPE:
        return replace(entry, icon=f"s-{event.to_state}", mark="rule end", state=event.to_state)
    return entry


def _proposed(op: OperationFacts, event: EventFacts, entry: Entry) -> Entry:
    who = "agent" if op.agent_owner else "person"
    first = event.detail.get("remedy_of")
    return replace(
        entry,
        icon=f"k-{who}",
        mark="answer" if who == "agent" else "person",
        by=f"by {op.proposer_words}",
        rank=0,
        text=f"{_asked(op)} It makes good for op {short(first)}." if first else _asked(op),
        meta=_run(op),
    )


_TITLES = {
    "policy_held": "Policy: people must decide",
    "policy_denied": "Policy refused it",
    "policy_cleared": "Policy allowed it by itself",
    "expired": "Expired: nobody decided in time",
    "approval_revoked": "Approval taken back",
    "approval_lapsed": "The approval no longer applies",
    "not_executed": "Not executed; it may be sent again",
    "confirmed": "Succeeded",
    "accepted": "Accepted: the provider is working on it",
    "refused": "Failed: the provider refused it",
    "unanswered": "Became unknown",
    "lease_ended": "Became unknown: the sender never reported back",
    "found_succeeded": "Found: it succeeded",
    "found_pending": "Found: the provider is working on it",
    "found_failed": "Found: it failed",
    "proved_absent": "Proved absent; it may be sent again",
    "proved_not_executed": "Proved not executed",
    "ruled_happened": "People ruled: it happened",
    "ruled_different": "People ruled: a different refund happened",
    "ruled_not_happened": "People ruled: it did not happen",
    "taken_back": "The money came back",
    "contradicted": "Contradicted: money seems to have moved",
    "ruling_contradicted": "A ruling was contradicted",
}
# Entering one of these is marked with the state's own shape.
_WITH_A_SHAPE = frozenset({"succeeded", "failed", "pending", "returned", "mismatched"})


def _amount(op: OperationFacts) -> str:
    return display(op.amount_minor, op.currency)


def _asked(op: OperationFacts) -> str:
    ticket = f" (ticket {op.ticket_ref})" if op.ticket_ref else ""
    return f"Refund {_amount(op)}, {state_word(op.reason_code)}, asked for by {op.requester_words}{ticket}."


def _run(op: OperationFacts) -> str:
    parts = [part for part in (op.run_ref, op.step_ref and f"step {op.step_ref}") if part]
    return ", ".join(parts)


def _approved(trail: Trail, event: EventFacts, entry: Entry, clock: Clock) -> Entry:
    given = [each for each in trail.approvals if each.round == event.detail.get("round")]
    notes = []
    if any(each.asked_by_approver for each in given):
        notes.append("asked for by the approver")
    if trail.op.possible_repeat and any(each.separate_refund_confirmed for each in given):
        notes.append("confirmed as a separate refund")
    until = min((each.expires_at for each in given), default=None)
    valid = f", valid until {clock.minutes(until)}" if until else ""
    return replace(
        entry,
        icon="k-person",
        mark="person",
        text=f"For order version {event.detail.get('order_version', '?')}{valid}.",
        meta="; ".join(notes),
    )


def lone_approvals(trail: Trail) -> Iterator[Entry]:
    """Approvals that did not complete their round: they caused no event of their own."""
    complete = {event.at for event in trail.events if event.event == "approved"}
    for each in trail.approvals:
        of_round = [other for other in trail.approvals if other.round == each.round]
        last = each is of_round[-1]
        done = any(
            event.event == "approved" and event.detail.get("round") == each.round
            for event in trail.events
        )
        if last and done and complete:
            continue
        yield Entry(
            at=each.at,
            rank=3,
            title="First approval" if each is of_round[0] else "Approval",
            icon="k-person",
            mark="person",
            by=f"by {each.approver}, {each.as_role}",
            text=f"For order version {each.order_version}; nothing is sent until the next one.",
            anchor=f"approval-{each.round}-{each.approver}",
        )


def _sent(trail: Trail, event: EventFacts, entry: Entry) -> Entry:
    op, attempt = trail.op, trail.attempt(event.attempt_no)
    again = event.event == "resubmitted"
    title = f"Attempt {event.attempt_no} recorded"
    text = "No byte of it was seen on the wire."
    if attempt and attempt.first_byte_at:
        title = f"Attempt {event.attempt_no} sent{' again, same key' if again else ''}"
        text = f"{_amount(op)} set aside first. First byte"
        text += f" {after(attempt.recorded_at, attempt.first_byte_at)} after it was recorded."
    elif attempt and attempt.closed_at is None:
        title, text = f"Attempt {event.attempt_no} under way", f"{_amount(op)} set aside first."
    return replace(
        entry, title=title, by=f"to {op.account}", icon="k-attempt", mark="attempt", text=text
    )


def after(start: datetime, end: datetime) -> str:
    seconds = (end - start).total_seconds()
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
