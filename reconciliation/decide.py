"""What follows from what we know about one operation. Pure: values and `now` in, a value out.

The table of cases, first fit wins:

  our own answer or a lookup shows our refund,
      matching, succeeded                    -> found_succeeded   (contradicted where we said no)
      matching, still working                -> found_pending     (where it is pending: look again,
                                                a case `overdue_pending` after a day)
      matching, finally negative             -> found_failed, if every other attempt is explained
      differing in a field                   -> case `mismatch`
      more than once                         -> booked once and more, case `duplicate`
  an attempt was refused, the others explained -> found_failed
  nothing can ever settle it                 -> case `unresolved`, at once
  nothing shown, or no readable answer       -> look again; a case once the patience is over

An absence is stored and counted, and concludes nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciliation.matching import Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import ProviderContract, allowed, quiet_until
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers.base import StatusWords

# With an unknown flight bound there is no quiet period to wait for; count from here instead.
_COUNT_AFTER_UNKNOWN = timedelta(seconds=900)
_DAY = timedelta(days=1)
_SAID_NO = frozenset(
    {
        states.FAILED,
        states.RETURNED,
        states.DENIED,
        states.REJECTED,
        states.WITHDRAWN,
        states.EXPIRED,
        states.AUTHORIZED,
        states.AWAITING_APPROVAL,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt as the decision sees it. `outcome` None is ambiguous."""

    no: int
    outcome: str | None
    recorded_at: datetime
    send_deadline: datetime
    stop_proof_at: datetime | None
    settled_by_evidence: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One operation as the decision sees it."""

    state: str
    entered_at: datetime
    unknown_since: datetime | None
    attempts: tuple[AttemptView, ...]
    has_case: bool
    inconclusive_at: tuple[datetime, ...]
    booked_ref: str | None


@dataclass(frozen=True, slots=True)
class Settle:
    """Move by `event`; `record` is the provider's refund it rests on, where there is one.

    `surplus`: further refunds of this operation that were paid too; they open a case.
    """

    event: str
    because: str
    record: RefundRecord | None = None
    surplus: tuple[RefundRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenCase:
    """Ask a person. `surplus`: refunds of this operation that were paid besides the booked one."""

    reason: str
    because: str
    surplus: tuple[RefundRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LookUpAgain:
    at: datetime


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do and nothing to wait for: the record agrees with us."""


Decision = Settle | OpenCase | LookUpAgain | Rest


def decide(
    view: View,
    finding: Finding | None,
    *,
    contract: ProviderContract,
    words: StatusWords,
    limits: Limits,
    now: datetime,
) -> Decision:
    """The one decision that follows; `finding` is None where nothing could be asked or read."""
    if finding is not None and finding.verdict is Verdict.DUPLICATE:
        return _paid_twice(view, finding, words)
    if finding is not None and finding.verdict is Verdict.DIFFERS:
        return OpenCase("mismatch", finding.because)
    if finding is not None and finding.verdict is Verdict.MATCH:
        assert finding.record is not None
        return _matched(view, finding.record, finding.because, contract, words, limits, now)
    if view.state in (states.UNKNOWN, states.AUTHORIZED) and _refused(view, contract, limits, now):
        return Settle("found_failed", "The provider refused it, and no other attempt can pay.")
    if view.state in states.ENDED or view.state not in states.UNCERTAIN:
        return Rest() if not view.has_case else LookUpAgain(now + _DAY)
    return _patience(view, contract, limits, now)


def _matched(
    view: View,
    record: RefundRecord,
    because: str,
    contract: ProviderContract,
    words: StatusWords,
    limits: Limits,
    now: datetime,
) -> Decision:
    status = record.provider_status
    if status in words.succeeded:
        if view.state == states.SUCCEEDED:
            if view.booked_ref == record.ref:
                return Rest()
            return OpenCase("contradiction", f"Booked as {view.booked_ref}. {because}")
        event = "contradicted" if view.state in _SAID_NO else "found_succeeded"
        return Settle(event, because, record)
    if status in words.pending:
        if view.state in _SAID_NO:
            return Settle("contradicted", because, record)
        if view.state == states.PENDING:
            return _patience(view, contract, limits, now)
        if view.state in states.UNCERTAIN:
            return Settle("found_pending", because, record)
        return OpenCase("contradiction", because)
    if status in words.failed:
        if view.state in states.UNCERTAIN:
            if others_explained(view, contract, limits, now, besides_found=True):
                return Settle("found_failed", because, record)
            return LookUpAgain(next_look(view, contract, limits, now))
        return Rest() if view.state == states.FAILED else OpenCase("contradiction", because)
    return OpenCase("mismatch", f"{record.ref} has a status we do not know: {status}.")


def _paid_twice(view: View, finding: Finding, words: StatusWords) -> Decision:
    """The refund happened, and happened again: both count, and a person must recover one."""
    ours = [each for each in finding.candidates if each.ours]
    clean = all(set(each.fields.values()) == {"match"} for each in ours)
    paid = [each.record for each in ours if each.record.provider_status in words.succeeded]
    paid.sort(key=lambda each: (each.created_at is None, each.created_at, each.ref))
    if view.state == states.SUCCEEDED:
        surplus = tuple(each for each in paid if each.ref != view.booked_ref)
        return OpenCase("duplicate", finding.because, surplus)
    if clean and len(paid) == len(ours) and view.state in states.UNCERTAIN:
        return Settle("found_succeeded", finding.because, paid[0], tuple(paid[1:]))
    return OpenCase("duplicate", finding.because)


def _refused(view: View, contract: ProviderContract, limits: Limits, now: datetime) -> bool:
    """A refusal outranks (rule 34), if no other attempt can still pay (rules 11, 12, 35)."""
    return any(each.outcome == "refused" for each in view.attempts) and others_explained(
        view, contract, limits, now, besides_found=False
    )


def others_explained(
    view: View,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    *,
    besides_found: bool,
) -> bool:
    """Whether every attempt but the one in hand is known to have paid nothing.

    `besides_found`: one ambiguous attempt is the one that made the refund we found.
    """
    allowance = 1 if besides_found else 0
    for each in view.attempts:
        if each.settled_by_evidence or each.outcome in ("not_sent", "turned_away", "refused"):
            continue
        if each.outcome in ("confirmed", "accepted") and not besides_found:
            return False
        if _same_by_key(view, contract, limits, now):
            continue
        if allowance == 0:
            return False
        allowance -= 1
    return True


def _same_by_key(view: View, contract: ProviderContract, limits: Limits, now: datetime) -> bool:
    if not contract.rejections_stored:
        return False
    if contract.keys == "forever":
        return True
    window = contract.key_window.seconds
    if contract.keys != "window" or window is None:
        return False
    first = min(each.recorded_at for each in view.attempts)
    return now <= first + timedelta(seconds=window - limits.skew_seconds)


def _patience(view: View, contract: ProviderContract, limits: Limits, now: datetime) -> Decision:
    if not view.has_case and view.state == states.UNKNOWN:
        why = over_patience(view, contract, limits, now)
        if why:
            return OpenCase("unresolved", why)
    overdue = now - view.entered_at >= timedelta(seconds=limits.escalation_age_seconds)
    if not view.has_case and view.state == states.PENDING and overdue:
        return OpenCase("overdue_pending", "The provider has been working on it for a day.")
    return LookUpAgain(next_look(view, contract, limits, now))


def over_patience(
    view: View, contract: ProviderContract, limits: Limits, now: datetime
) -> str | None:
    """Why a person must look now, or None; the first of the limits wins (R23)."""
    if not allowed(contract).can_settle:
        return "This account has no lookup and no notices: only a person can find out."
    since = view.unknown_since or view.entered_at
    age = now - since
    if age >= timedelta(seconds=limits.escalation_age_seconds):
        return "The outcome has been unknown for a day."
    patience = contract.normal_window_seconds + contract.escalation_grace_seconds
    if age >= timedelta(seconds=patience):
        return f"The outcome has been unknown for longer than {patience} s."
    quiet = quiet_until(
        contract,
        [
            (each.stop_proof_at or each.send_deadline, each.stop_proof_at is not None)
            for each in view.attempts
        ],
        limits.skew_seconds,
    )
    counted_from = quiet or since + _COUNT_AFTER_UNKNOWN
    counted = sum(1 for at in view.inconclusive_at if at > counted_from)
    if counted >= limits.inconclusive_lookups_max:
        return f"{counted} lookups in a row could not tell."
    return None


def next_look(view: View, contract: ProviderContract, limits: Limits, now: datetime) -> datetime:
    """When to ask next: early, then resting, then hourly; slower while a person has the case."""
    age = now - view.entered_at
    if view.has_case:
        slow = limits.lookup_with_case_seconds
        return now + timedelta(seconds=slow if age < _DAY else slow * 6)
    for seconds in contract.lookup_schedule:
        at = view.entered_at + timedelta(seconds=seconds)
        if at > now:
            return at
    return now + timedelta(seconds=contract.lookup_schedule[-1])
