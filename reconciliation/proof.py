"""What proves that attempts paid nothing, and what makes one more send safe. Pure.

Every instant is compared with the reading of the contract that was passed in: the stricter of
today's and of those that the attempts were made under.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciliation.known import AttemptView, View
from reconciliation.matching import Finding, Verdict
from refunds.domain.contract import Accepted, ProviderContract, as_accepted, quiet_until
from refunds.domain.limits import Limits
from refunds.domain.outcome import NOT_EXECUTED

# The refund was made, or is being made: no absence can be believed beside it.
_PAYS = frozenset({"confirmed", "accepted"})


@dataclass(frozen=True, slots=True)
class Proof:
    """Every attempt is proven to have paid nothing. `accepted`: what the proof rests on besides."""

    because: str
    covers: bool
    accepted: tuple[int, ...] = ()


def not_executed(attempt: AttemptView) -> bool:
    """Whether this attempt is known to have executed nothing, and may be sent again (rule 29)."""
    if attempt.outcome in NOT_EXECUTED:
        return True
    return attempt.settled_by_evidence and attempt.outcome != "refused"


def refused(view: View) -> bool:
    """Whether the provider said no for good to any attempt, whatever else is known (rule 34)."""
    return any(each.outcome == "refused" for each in view.attempts)


def quiet_end(
    view: View, contract: ProviderContract, accepted: Iterable[Accepted], limits: Limits
) -> datetime | None:
    """When an absence may first be believed, or None if never (rules 15 to 17)."""
    bounds, _ = as_accepted(contract, accepted, "absence")
    if contract.lookup == "none" or view.adopted:
        return None
    writes = [
        (each.stop_proof_at or each.send_deadline, each.stop_proof_at is not None)
        for each in view.attempts
    ]
    return quiet_until(bounds, writes, limits.skew_seconds)


def absence(
    view: View,
    finding: Finding | None,
    looked_at: datetime | None,
    contract: ProviderContract,
    accepted: Iterable[Accepted],
    limits: Limits,
) -> Proof | None:
    """The proof that nothing was paid: each sender says so, or a complete lookup after the quiet.

    `looked_at` is when the lookup started; it counts only if that was later than the quiet's end.
    """
    if not view.attempts or view.adopted or view.quarantined:
        return None
    if all(not_executed(each) for each in view.attempts):
        return Proof("No attempt was executed: each sender says so.", covers=False)
    if finding is None or finding.verdict is not Verdict.ABSENT or looked_at is None:
        return None
    if any(each.outcome in _PAYS for each in view.attempts):
        return None
    accepted = tuple(accepted)
    quiet = quiet_end(view, contract, accepted, limits)
    if quiet is None or looked_at <= quiet:
        return None
    _, named = as_accepted(contract, accepted, "absence")
    since = f"{quiet:%H:%M:%S} UTC"
    return Proof(f"Whatever was sent would have shown by {since}: {finding.because}", True, named)


def others_explained(
    view: View,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    *,
    besides_found: bool,
) -> bool:
    """Whether every attempt but the one in hand is known to have paid nothing, or to be the same.

    `besides_found`: one ambiguous attempt is the one that made the refund we found.
    """
    doubtful = [
        each
        for each in view.attempts
        if not each.settled_by_evidence
        and each.outcome not in ("not_sent", "turned_away", "refused")
    ]
    if besides_found and len(doubtful) <= 1:
        return True
    if not besides_found and any(each.outcome in _PAYS for each in doubtful):
        return False
    return all(_same_by_key(each, view, contract, limits, now) for each in doubtful)


def shows_all_there_is(
    view: View,
    finding: Finding,
    looked_at: datetime | None,
    contract: ProviderContract,
    accepted: Iterable[Accepted],
    limits: Limits,
) -> bool:
    """Whether a complete lookup after the quiet period explains every attempt by what it shows."""
    quiet = quiet_end(view, contract, accepted, limits)
    if view.quarantined or not finding.complete or looked_at is None or quiet is None:
        return False
    return looked_at > quiet


def _same_by_key(
    attempt: AttemptView, view: View, contract: ProviderContract, limits: Limits, now: datetime
) -> bool:
    """Whether the key makes this attempt the same refund as the others, answer and all (rule 35).

    Where the key has an end, what was asked was answered before it, and whatever of this attempt is
    still on its way lands before it: a copy that came later would be a refund of its own.
    """
    if not contract.rejections_stored:
        return False
    if contract.keys == "forever":
        return True
    window, flight = contract.key_window.seconds, contract.flight_max.seconds
    if contract.keys != "window" or window is None or flight is None:
        return False
    idle = 0 if attempt.stop_proof_at is not None else contract.idle_close.seconds
    if idle is None:
        return False
    lands = (attempt.stop_proof_at or attempt.send_deadline) + timedelta(seconds=idle + flight)
    return max(now, lands) <= _first(view) + timedelta(seconds=window - limits.skew_seconds)


def may_resend(
    view: View,
    finding: Finding | None,
    looked_at: datetime | None,
    contract: ProviderContract,
    accepted: Iterable[Accepted],
    limits: Limits,
    now: datetime,
) -> bool:
    """Whether one more send under the same key is safe and useful now (rules 18, 37, 40, 41)."""
    if view.adopted or view.quarantined or view.halted or view.has_case:
        return False
    if not 1 <= len(view.attempts) < limits.attempts_max:
        return False
    if any(each.kept or each.outcome in (*_PAYS, "refused") for each in view.attempts):
        return False
    if view.sendable_until is None or view.sendable_until <= now or not view.explained:
        return False
    last = max(each.recorded_at for each in view.attempts)
    if sum(at > last for at in view.inconclusive_at) < limits.resend_after_lookups:
        return False
    if contract.keys == "forever":
        return True
    bounds, _ = as_accepted(contract, accepted, "resend")
    return _key_lives(view, finding, looked_at, bounds, limits, now)


def _key_lives(
    view: View,
    finding: Finding | None,
    looked_at: datetime | None,
    bounds: ProviderContract,
    limits: Limits,
    now: datetime,
) -> bool:
    """Whether every copy, this one included, lands while the key still makes it the same refund."""
    window, flight = bounds.key_window.seconds, bounds.flight_max.seconds
    if bounds.keys != "window" or window is None or flight is None:
        return False
    if bounds.idle_close.seconds is None and (
        # No connection ends this copy's own sleep; only an accepted bound speaks for it, too.
        bounds.flight_max.basis != "accepted"
        or any(each.stop_proof_at is None for each in view.attempts)
    ):
        return False
    key = timedelta(seconds=window)
    landing = timedelta(
        seconds=limits.send_deadline_seconds
        + (bounds.idle_close.seconds or 0)
        + flight
        + limits.skew_seconds
    )
    first = _first(view)
    if now <= first + key / 4 and now + landing <= first + key:
        return True
    lag = bounds.lookup_lag.seconds
    if finding is None or finding.verdict is not Verdict.ABSENT or looked_at is None or lag is None:
        return False
    return (now - looked_at) + landing + timedelta(seconds=lag) <= key


def _first(view: View) -> datetime:
    return min(each.recorded_at for each in view.attempts)
