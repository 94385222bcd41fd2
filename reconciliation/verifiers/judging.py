"""Whether our books agree with the newest thing that the provider showed, or settled. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from refunds.domain import states
from refunds.domain.money import display
from refunds.providers.base import StatusWords

_NO_MONEY = frozenset(
    {
        states.AWAITING_APPROVAL,
        states.AUTHORIZED,
        states.DENIED,
        states.REJECTED,
        states.WITHDRAWN,
        states.EXPIRED,
        states.FAILED,
    }
)
_PAID = frozenset({states.SUCCEEDED, states.MISMATCHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One operation beside its newest finding. `ours`: the candidates that are ours, as stored.

    `quiet_at`: after it a complete list that does not show the refund proves that it is not
    there; None where the contract never proves that.
    """

    state: str
    booked_ref: str
    verdict: str
    ours: list[dict[str, Any]]
    looked_at: datetime
    quiet_at: datetime | None


def contradiction(seen: Seen, words: StatusWords) -> str:
    """What the finding says against the state, as the end of "It is ..., and ..."; "" if nothing."""
    if seen.verdict == "duplicate":
        # What came back since was recovered: it is the one that stands that counts.
        standing = [each for each in seen.ours if each["provider_status"] not in words.failed]
        if not standing and seen.state == states.RETURNED:
            return ""
        if len(standing) != 1:
            refs = ", ".join(str(each["ref"]) for each in seen.ours)
            return f"the provider shows more than one refund of it: {refs}"
        seen = replace(seen, ours=standing)
    if seen.verdict in ("match", "differs", "duplicate") and seen.ours:
        return _beside_refund(seen, words)
    gone = seen.verdict == "absent" and seen.state == states.SUCCEEDED
    if gone and seen.quiet_at is not None and seen.looked_at > seen.quiet_at:
        return "a complete list, asked late enough, does not show it"
    return ""


def _beside_refund(seen: Seen, words: StatusWords) -> str:
    ref, status = str(seen.ours[0]["ref"]), str(seen.ours[0]["provider_status"])
    if seen.state in _NO_MONEY and status not in words.failed:
        return f"the provider shows {ref} as {status}"
    if seen.state in _PAID:
        if status in words.failed:
            return f"the provider shows {ref} as {status}"
        if seen.booked_ref and seen.booked_ref != ref:
            return f"it is booked as {seen.booked_ref}, and the provider shows {ref}"
    if seen.state == states.SUCCEEDED and seen.verdict == "differs":
        return f"{ref} at the provider is not as we asked for it"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One refund beside the newest report that has it. Amounts in minor units.

    `state` and `key` are those of its operation, "" where there is none. `booked_minor` is None
    where no book of ours has it, `report` where no report has it; `paid`: the report says so.
    `covered_until`: until when the reports are complete about the time it was made in, None where
    nobody said so. `waits_for_order`: we remember it until its payment is fed. `came_back_since`:
    the provider showed after that report that it did not stay paid.
    """

    ref: str
    key: str
    state: str
    booked_minor: int | None
    booked_currency: str
    counts: bool
    report: str | None
    paid: bool
    amount_minor: int | None
    currency: str
    covered_until: datetime | None
    waits_for_order: bool
    came_back_since: bool


def against_report(seen: Reported) -> str:
    """What the reports say against our books, as a whole clause; "" if nothing."""
    if seen.report is None:
        return _without_report(seen)
    status = "paid" if seen.paid else "not paid"
    says = f"report {seen.report} shows {seen.ref} as {status}"
    if seen.paid and seen.state in _NO_MONEY:
        return f"{seen.key} is {seen.state.replace('_', ' ')}, and {says}"
    if seen.booked_minor is None:
        # An uncertain one of ours is found by its lookup, and one without an order is remembered.
        known = seen.state in states.UNCERTAIN or seen.waits_for_order
        return f"{says}, and no book of ours has it" if seen.paid and not known else ""
    if seen.paid and not seen.counts and seen.came_back_since:
        return ""
    if seen.paid != seen.counts and seen.state not in states.UNCERTAIN:
        return f"{says}, and we {'count' if seen.counts else 'do not count'} it"
    theirs = (seen.amount_minor, seen.currency)
    if theirs != (seen.booked_minor, seen.booked_currency):
        booked = display(seen.booked_minor, seen.booked_currency)
        reported = display(seen.amount_minor or 0, seen.currency)
        return f"{seen.ref} is booked with {booked}, and report {seen.report} has {reported}"
    return ""


def _without_report(seen: Reported) -> str:
    if seen.booked_minor is None or not seen.counts or seen.covered_until is None:
        return ""
    booked = display(seen.booked_minor, seen.booked_currency)
    return (
        f"{seen.ref} is booked with {booked}, and the reports, complete until"
        f" {seen.covered_until:%Y-%m-%d %H:%M} UTC, do not have it"
    )
