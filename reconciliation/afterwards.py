"""What follows once an operation has ended, or a list showed more than its lookup does. Pure.

it succeeded, or was ruled to have happened otherwise, and the provider shows
    the booked refund, finally negative          -> taken_back
    the refund as it was booked                  -> rest
    another one that is ours by its marker, where
    only people's word says which one it was     -> ruling_contradicted
    a second one that has come back by now       -> rest: the first one stands
    more than one, and all of them came back     -> taken_back
    nothing, completely and late enough          -> case `contradiction`: what is booked vanished
it came back, and the provider says so           -> rest
a list of the account showed it, and no lookup has read it since,
    completely, and it is not there              -> case `contradiction`, where its money moved
    not at all                                   -> look again; nothing is concluded from it
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciliation.known import Decision, LookUpAgain, OpenCase, Rest, Settle, View
from reconciliation.matching import Candidate, Finding, Verdict
from reconciliation.patience import look_again, over_patience
from refunds.domain import states
from refunds.domain.contract import Accepted, ProviderContract
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers.base import StatusWords

_DAY = timedelta(days=1)
_MOVED = frozenset({states.SUCCEEDED, states.MISMATCHED})


def once_ended(view: View, finding: Finding | None, words: StatusWords) -> Decision | None:
    """What the provider shows of a refund whose money moved; None: nothing that this page knows."""
    if finding is None:
        return None
    record = finding.record
    if view.state == states.RETURNED:
        came_back = record is not None and record.provider_status in words.failed
        matches = finding.verdict is Verdict.MATCH and came_back
        return Rest() if matches or _all_came_back(finding, words) else None
    if view.state not in _MOVED:
        return None
    other = _ruled_otherwise(view, finding, words)
    if other is not None:
        return Settle("ruling_contradicted", finding.because, other)
    if finding.verdict is Verdict.DUPLICATE:
        return _of_several(view, finding, words)
    if record is None or record.ref != view.booked_ref:
        return None
    if record.provider_status in words.failed:
        return Settle("taken_back", f"{record.ref} is {record.provider_status} now.", record)
    as_booked = record.amount_minor == view.booked_minor
    stands = record.provider_status in words.succeeded and as_booked
    return Rest() if stands and view.state == states.MISMATCHED else None


def vanished(
    view: View,
    finding: Finding | None,
    looked_at: datetime | None,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
) -> Decision | None:
    """What is booked, and a complete list begun long after the booking does not show it.

    By then it would show where the contract says so, and a day later where it does not. What people
    answered once is not asked again.
    """
    if view.state not in _MOVED or view.answered or finding is None or looked_at is None:
        return None
    gone = finding.gone == view.booked_ref
    if finding.verdict is not Verdict.ABSENT and not gone:
        return None
    flight, lag = contract.flight_max.seconds, contract.lookup_lag.seconds
    shows_after = _DAY
    if flight is not None and lag is not None:
        shows_after = timedelta(seconds=flight + lag + 2 * limits.skew_seconds)
    if looked_at <= view.entered_at + shows_after:
        return None
    if view.has_case:
        return LookUpAgain(now + _DAY)
    return OpenCase(
        "contradiction",
        f"{view.booked_ref} is booked, and a complete list of the payment's refunds does not show it.",
    )


def _ruled_otherwise(view: View, finding: Finding, words: StatusWords) -> RefundRecord | None:
    """A paid refund with our marker, where people ruled on another one or on other figures."""
    if not (view.by_ruling or view.state == states.MISMATCHED):
        return None
    if finding.verdict is Verdict.MATCH:
        record = finding.record
        assert record is not None, "a match is of one refund"
        agrees = record.ref == view.booked_ref and view.state == states.SUCCEEDED
        return record if record.provider_status in words.succeeded and not agrees else None
    if finding.verdict is not Verdict.DUPLICATE:
        return None
    marked = [each for each in finding.candidates if _carries_marker(each)]
    if any(each.record.ref == view.booked_ref for each in marked):
        return None
    paid = [each.record for each in marked if each.record.provider_status in words.succeeded]
    return paid[0] if paid else None


def _carries_marker(each: Candidate) -> bool:
    """Not merely known by the reference that people named."""
    return each.record.marker is not None and each.fields.get("marker") == "match"


def _of_several(view: View, finding: Finding, words: StatusWords) -> Decision | None:
    if _one_stands(view, finding, words):
        return Rest()
    booked = [each.record for each in finding.candidates if each.record.ref == view.booked_ref]
    if view.state != states.SUCCEEDED or not booked or not _all_came_back(finding, words):
        return None
    return Settle("taken_back", f"{finding.because} All of them came back.", booked[0])


def _all_came_back(finding: Finding, words: StatusWords) -> bool:
    """Whether more than one refund of ours is shown, and each of them finally negative."""
    statuses = {each.record.provider_status for each in finding.candidates if each.ours}
    return finding.verdict is Verdict.DUPLICATE and words.failed.issuperset(statuses)


def _one_stands(view: View, finding: Finding, words: StatusWords) -> bool:
    """Of several refunds of ours only the booked one is left; the others came back."""
    statuses = {
        each.record.ref: each.record.provider_status for each in finding.candidates if each.ours
    }
    if view.booked_ref is None:
        return False
    booked = statuses.pop(view.booked_ref, "")
    return booked in words.succeeded and words.failed.issuperset(statuses.values())


def only_listed(
    view: View,
    finding: Finding | None,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    accepted: Iterable[Accepted],
) -> Decision:
    """A list of the account showed a refund of ours that this lookup does not: never nothing."""
    absent = finding is not None and finding.verdict is Verdict.ABSENT
    if not view.has_case:
        if view.state not in states.UNCERTAIN and absent:
            return OpenCase(
                "contradiction",
                "A list of the account showed a refund of it, and the payment's own list does not.",
            )
        if view.state == states.UNKNOWN:
            why = over_patience(view, contract, limits, now, tuple(accepted))
            if why:
                return OpenCase("unresolved", why)
    return look_again(view, contract, limits, now, tuple(accepted))
