"""When to ask next, and when a person must. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciliation.known import LookUpAgain, View
from reconciliation.proof import quiet_end
from refunds.domain.contract import Accepted, ProviderContract, allowed
from refunds.domain.limits import Limits

# With an unknown flight bound there is no quiet period to wait for; count from here instead.
_COUNT_AFTER_UNKNOWN = timedelta(seconds=900)
_DAY = timedelta(days=1)
_A_MOMENT = timedelta(seconds=1)


def over_patience(
    view: View,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    accepted: Iterable[Accepted] = (),
) -> str | None:
    """Why a person must look now, or None; the first of the limits wins (R23).

    Where the end of the quiet period is known, nobody is asked merely because it takes longer than
    usual before a lookup that could have proved something has failed to. A quarantine is a question
    to people by itself: while it lasts no lookup can prove an absence, and its time does not count.
    Asked for meanwhile, each of those refunds would be paid by hand in place of being sent again.
    """
    accepted = tuple(accepted)
    if not allowed(contract, accepted=accepted).can_settle:
        return "This account has no lookup and no notices: only a person can find out."
    since = view.unknown_since or view.entered_at
    age = now - since
    if age >= timedelta(seconds=limits.escalation_age_seconds):
        return "The outcome has been unknown for a day."
    if view.quarantined and contract.lookup != "none":
        return None
    since = max(since, view.resumed_at or since)
    age = now - since
    quiet = quiet_end(view, contract, accepted, limits)
    counted_from = max(quiet, since) if quiet else since + _COUNT_AFTER_UNKNOWN
    counted = sum(1 for at in view.inconclusive_at if at > counted_from)
    patience = contract.normal_window_seconds + contract.escalation_grace_seconds
    if age >= timedelta(seconds=patience) and (quiet is None or counted):
        return f"The outcome has been unknown for longer than {patience} s."
    if counted >= limits.inconclusive_lookups_max:
        return f"{counted} lookups in a row could not tell."
    return None


def look_again(
    view: View,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    accepted: Iterable[Accepted] = (),
) -> LookUpAgain:
    """When to ask next: by the schedule, and as soon as the quiet period is over."""
    at = next_look(view, contract, limits, now)
    quiet = quiet_end(view, contract, accepted, limits)
    if quiet is not None and now <= quiet < at:
        return LookUpAgain(quiet + _A_MOMENT, not_before=quiet + _A_MOMENT)
    return LookUpAgain(at)


def next_look(view: View, contract: ProviderContract, limits: Limits, now: datetime) -> datetime:
    """When to ask next by the schedule alone: early, then resting, slower while there is a case."""
    age = now - view.entered_at
    if view.has_case:
        slow = limits.lookup_with_case_seconds
        return now + timedelta(seconds=slow if age < _DAY else slow * 6)
    for seconds in contract.lookup_schedule:
        at = view.entered_at + timedelta(seconds=seconds)
        if at > now:
            return at
    return now + timedelta(seconds=contract.lookup_schedule[-1])
