"""The rows of the queues: what is known, how long it has lasted, and when we look next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from review.presenters.facts import (
    CaseFacts,
    EvidenceFacts,
    OperationFacts,
)
from review.presenters.timeline import VERDICTS
from review.presenters.words import Clock, count_of, span

_SOON = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How much of the target has passed: `filled` of 100, with the words beside it."""

    age: str
    due: str
    late: bool
    filled: int


def target_bar(op: OperationFacts, clock: Clock) -> Bar:
    """Against the time in which this account's refunds should be known (seconds, contract)."""
    since = op.unknown_since or op.entered_at
    return _bar(since, since + timedelta(seconds=_target_seconds(op)), clock)


def _target_seconds(op: OperationFacts) -> int:
    if op.contract is None:
        return 900
    if op.state == "pending":
        return op.contract.normal_window_seconds + op.contract.escalation_grace_seconds
    return op.contract.unknown_target_seconds


def case_bar(case: CaseFacts, op: OperationFacts | None, clock: Clock) -> Bar:
    """The age of the doubt, or of the case where there is none, against the case's due time: the
    one that cases are sorted by."""
    in_doubt = op is not None and op.settled_at is None
    since = op.unknown_since if op is not None and in_doubt else None
    return _bar(since or case.opened_at, case.due_at, clock)


def _bar(since: datetime, until: datetime, clock: Clock) -> Bar:
    passed, whole = clock.now - since, until - since
    late = clock.now > until
    over = span(clock.now - until) if late else span(until - clock.now)
    filled = 100 if late else int(100 * (passed / whole)) if whole else 100
    return Bar(
        age=span(passed),
        due=f"overdue {over}" if late else f"due in {over}",
        late=late,
        filled=max(0, min(filled, 100)),
    )


def what_we_know(op: OperationFacts, last: EvidenceFacts | None, clock: Clock) -> str:
    """The last finding, short."""
    if op.state == "submitting":
        return (
            f"Being sent since {clock.seconds(op.entered_at)}. Until the answer is in, treat it as"
            " possibly done."
        )
    if last is None:
        return "Sent; nothing came back, and the provider was not asked yet."
    because = str(last.facts.get("because") or "")
    if last.kind == "lookup":
        verdict = VERDICTS.get(str(last.facts.get("verdict")), "cannot tell")
        checks = count_of(op.lookup_started, "check")
        if verdict == "no record":
            return f"No record in {checks}. {because}"
        return because or f"{verdict.capitalize()} in {checks}"
    return because


def looked(op: OperationFacts, last: EvidenceFacts | None, clock: Clock) -> tuple[str, str]:
    """(last check, next check)."""
    before = "none yet"
    if last is not None and last.kind == "lookup":
        before = clock.seconds(last.stored_at)
    if op.contract is not None and op.contract.lookup == "none":
        return before, "never: this account has no lookup"
    if op.due_at is None:
        return before, "none planned"
    due = op.due_at <= clock.now
    return before, "due now" if due else f"next {clock.seconds(op.due_at)}"


def checker_line(ran_at: datetime | None, clock: Clock) -> str:
    """Whether the automatic checker lives, for the head of a page."""
    if ran_at is None:
        return "We do not know when the checker last ran."
    return f"The checker last ran {span(clock.now - ran_at)} ago."


def nothing_unknown(ran_at: datetime | None, clock: Clock, *, alive_seconds: int) -> str:
    """An empty queue with a dead checker must not read as all clear."""
    if ran_at is not None and clock.now - ran_at <= timedelta(seconds=alive_seconds):
        return f"No refund has an unknown outcome. {checker_line(ran_at, clock)}"
    dead = "we do not know when the checker last ran"
    if ran_at is not None:
        dead = f"the checker has not run since {clock.seconds(ran_at)}"
    return f"The list is empty, but {dead}. Do not read this as all clear."
