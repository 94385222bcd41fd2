"""An operation as it was seen: its state at a version, and what was known until the next move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from refunds.models import Operation, PolicyCheck
from refunds.queries import pages
from review import case_reads, facts
from review.access import Viewer
from review.given import given_to
from review.presenters.facts import ApprovalFacts
from review.presenters.trail import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The payment's money as it was written down last before the page's time, in minor units.
    `why`: what it was written down for."""

    captured_minor: int
    refunded_minor: int
    held_minor: int
    at: datetime
    why: str

    @property
    def available_minor(self) -> int:
        return self.captured_minor - self.refunded_minor - self.held_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`until` is when the operation left this version, None where it stands at it still; `before`
    and `after` are the neighbouring versions."""

    version: int
    state: str
    entered_at: datetime
    until: datetime | None
    trail: Trail
    balance: Balance | None
    before: int | None
    after: int | None


def read(found: Operation, version: int, who: Viewer) -> Seen | None:
    """What was known then; None for a version that the operation never had."""
    past = pages.history(found)
    head = next((each for each in past.events if each.seq == version), None)
    if head is None:
        return None
    then = next((each.at for each in past.events if each.seq == version + 1), None)
    cut = then or who.clock.now
    cases = [each for each in case_reads.cases_of(found.pk) if each.opened_at <= cut]
    # A case that closed later was open then.
    told = [
        replace(plain, closed_at=None, closed_because="")
        if plain.closed_at is not None and plain.closed_at > cut
        else plain
        for plain in map(facts.case, cases)
    ]
    plain = replace(
        facts.operation(found),
        state=head.to_state,
        version=version,
        entered_at=head.at,
        due_at=found.due_at if then is None else None,
    )
    attempts = [
        replace(each, closed_at=None, outcome=None)
        if each.closed_at is not None and each.closed_at > cut
        else each
        for each in map(facts.attempt, past.attempts)
        if each.recorded_at <= cut
    ]
    evidence = tuple(facts.evidence(each) for each in past.evidence if each.stored_at < cut)
    given = tuple(
        facts.approval(each) for each in given_to([found])[found.pk].all if each.at <= cut
    )
    trail = Trail(
        op=plain,
        events=tuple(facts.event(each) for each in past.events if each.seq <= version),
        attempts=tuple(attempts),
        evidence=evidence,
        cases=tuple(told),
        approvals=given,
        booked_ref="",
        steps=tuple(facts.step(each) for each in case_reads.steps_of(cases) if each.at <= cut),
    )
    return Seen(
        version=version,
        state=head.to_state,
        entered_at=head.at,
        until=then,
        trail=trail,
        balance=_balance(found, given),
        before=version - 1 if version > 1 else None,
        after=version + 1 if then is not None else None,
    )


def _balance(found: Operation, given: tuple[ApprovalFacts, ...]) -> Balance | None:
    """What the last approver saw by then, else what the policy check looked at; never today's."""
    if given:
        last = given[-1]
        return _written(last.shown, last.at, f"for {last.approver}’s approval")
    check = PolicyCheck.objects.filter(operation=found, name="within_balance").first()
    return _written(check.inputs, found.created_at, "when it was proposed") if check else None


def _written(numbers: Mapping[str, Any], at: datetime, why: str) -> Balance:
    return Balance(
        captured_minor=numbers["captured_minor"],
        refunded_minor=numbers["refunded_minor"],
        held_minor=numbers["held_minor"],
        at=at,
        why=why,
    )
