"""What happened to one operation, merged into one list in the order it happened.

A place where the wire went silent is an entry of its own: what is missing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from refunds.domain.money import display
from refunds.domain.states import UNCERTAIN
from review.presenters.facts import EvidenceFacts
from review.presenters.steps import steps
from review.presenters.trail import Entry, Trail, after, events, lone_approvals
from review.presenters.words import Clock, count_of, short, span, state_word

VERDICTS = {
    "match": "match",
    "differs": "differs",
    "duplicate": "more than one",
    "absent": "no record",
    "cannot_tell": "cannot tell",
}


def timed(entries: Iterable[Entry], clock: Clock) -> list[Entry]:
    """Entries of something that was never sent, oldest first, with their day lines."""
    return list(_with_days(sorted(entries, key=lambda entry: entry.at), None, clock))


def timeline(trail: Trail, clock: Clock, *, until: datetime | None = None) -> list[Entry]:
    """Oldest first, with day lines, grouped equal lookups, and the next planned look at the end.

    `until`: as it was known then; what came later is left out.
    """
    found = [
        *events(trail, clock),
        *lone_approvals(trail),
        *_evidence(trail, clock),
        *_silence(trail),
        *_cases(trail, clock),
        *steps(trail.steps),
        *_remedies(trail),
    ]
    found = [entry for entry in found if until is None or entry.at < until]
    found.sort(key=lambda entry: (entry.at, entry.rank))
    planned = _planned(trail, clock)
    return list(_with_days(_grouped(found), trail, clock)) + ([planned] if planned else [])


def _evidence(trail: Trail, clock: Clock) -> Iterator[Entry]:
    for each in trail.evidence:
        if each.kind == "lookup":
            yield _lookup(each, clock)
        elif each.kind == "notice":
            yield _notice(each, trail)
        elif each.facts.get("status") is not None or each.facts.get("outcome") == "not_sent":
            yield _answer(each)


def _lookup(each: EvidenceFacts, clock: Clock) -> Entry:
    verdict = VERDICTS.get(str(each.facts.get("verdict")), "cannot tell")
    because = _because(each)
    return Entry(
        at=each.stored_at,
        rank=2,
        title=f"Lookup {each.lookup_no}: {verdict}",
        by="automatic",
        icon="k-lookup",
        mark="lookup",
        text=because,
        meta=_lookup_meta(each),
        same_as=f"{verdict}|{because}",
        anchor=f"evidence-{each.id}",
        parts=(f"Lookup {each.lookup_no}, {clock.exact(each.stored_at)}",),
    )


def _notice(each: EvidenceFacts, trail: Trail) -> Entry:
    return Entry(
        at=each.stored_at,
        rank=2,
        title=f"Notice: {each.facts.get('type') or 'refund'}",
        by=f"from {trail.op.account}",
        icon="k-notice",
        mark="notice",
        text=_because(each),
        anchor=f"evidence-{each.id}",
    )


def _answer(each: EvidenceFacts) -> Entry:
    status = each.facts.get("status")
    return Entry(
        at=each.stored_at,
        rank=2,
        title=f"Answer: HTTP {status}" if status is not None else "Not sent",
        by=f"to attempt {each.attempt_no}",
        icon="k-answer",
        mark="answer",
        text=_because(each),
        anchor=f"evidence-{each.id}",
        meta=str(each.facts.get("ref") or ""),
    )


def _because(each: EvidenceFacts) -> str:
    return str(each.facts.get("because") or "")


def _lookup_meta(each: EvidenceFacts) -> str:
    pages = each.facts.get("pages")
    whole = "complete" if each.facts.get("complete") else "not complete"
    took = after(each.started_at, each.stored_at)
    return f"{whole}, {count_of(pages, 'page')}, {took}" if isinstance(pages, int) and pages else ""


def _silence(trail: Trail) -> Iterator[Entry]:
    """Attempts that no answer came back for: the rail is torn here."""
    answers = {each.attempt_no: each for each in trail.evidence if each.kind == "answer"}
    for attempt in trail.attempts:
        answer = answers.get(attempt.no)
        if attempt.outcome == "unanswered" and answer and answer.facts.get("status") is None:
            end = attempt.closed_at or answer.stored_at
            waited = after(attempt.first_byte_at or attempt.recorded_at, end)
            why = _cause(str(answer.facts.get("failure") or "nothing came back"))
            yield _gap(answer.stored_at, f"no answer after {waited}: {why}")
        elif attempt.outcome is None and attempt.closed_at is not None:
            yield _gap(attempt.closed_at, "no answer was recorded; whoever sent it is gone")


def _cause(failure: str) -> str:
    """The failure without the library's own words, which the evidence keeps."""
    return failure.partition(" (")[0]


def _gap(at: datetime, text: str) -> Entry:
    return Entry(at=at, rank=1, title=text, kind="gap")


def _cases(trail: Trail, clock: Clock) -> Iterator[Entry]:
    for case in trail.cases:
        reasons = ", ".join(state_word(reason) for reason in case.reasons)
        yield Entry(
            at=case.opened_at,
            rank=4,
            title=f"Case opened: {reasons}",
            icon="k-case",
            text=case.because
            if case.reasons == ("remedy",)
            else f"{case.because} Sending is halted; looking goes on.",
        )
        if case.closed_at is not None:
            yield Entry(
                at=case.closed_at,
                rank=5,
                title="Case closed",
                icon="k-case",
                text=case.closed_because,
            )


def _remedies(trail: Trail) -> Iterator[Entry]:
    for each in trail.remedies:
        amount = display(each.amount_minor, each.currency)
        yield Entry(
            at=each.created_at,
            rank=4,
            title="A refund was proposed to make good for this one",
            icon="k-person",
            mark="person",
            by=f"by {each.proposer}",
            text=f"{amount}, op {short(each.id)}.",
        )


def _grouped(entries: list[Entry]) -> Iterator[Entry]:
    """Equal lookups in a row become one entry that lists them."""
    held: Entry | None = None
    for entry in entries:
        if held is not None and held.same_as and held.same_as == entry.same_as:
            parts = (*held.parts, *entry.parts)
            title = f"{len(parts)} lookups, same result: {entry.same_as.partition('|')[0]}"
            held = replace(held, title=title, parts=parts, meta=entry.meta)
            continue
        if held is not None:
            yield held
        held = entry
    if held is not None:
        yield held


def _with_days(entries: Iterable[Entry], trail: Trail | None, clock: Clock) -> Iterator[Entry]:
    day = ""
    sent_at = trail.attempts[0].recorded_at if trail and trail.attempts else None
    for entry in entries:
        if clock.day(entry.at) != day:
            day = clock.day(entry.at)
            yield Entry(
                at=entry.at, rank=0, kind="day", title=f"{day}, times are {clock.zone_label}"
            )
        since = ""
        if sent_at and entry.at > sent_at and (entry.at - sent_at).total_seconds() >= 1:
            since = f"+{span(entry.at - sent_at)}"
        yield replace(entry, time=clock.exact(entry.at), since=since)


def _planned(trail: Trail, clock: Clock) -> Entry | None:
    op = trail.op
    if op.state not in UNCERTAIN or op.due_at is None or op.state == "submitting":
        return None
    if op.contract is not None and op.contract.lookup == "none":
        return None
    due = op.due_at <= clock.now
    return Entry(
        at=op.due_at,
        rank=9,
        title="Next automatic lookup",
        icon="k-lookup",
        mark="next",
        time="due now" if due else clock.seconds(op.due_at),
        since="" if due else "planned",
        text="Reading only: it sends no money and changes no record at the provider.",
    )
