"""What follows from what we know about one operation. Pure: values and `now` in, a value out.

The table of cases, first fit wins. What follows once an operation has ended stands in
`reconciliation.afterwards` and comes first.

  our own answer or a lookup shows our refund,
      where we said no, and not as finally
      negative                             -> contradicted: whatever else is odd is seen from there
      more than once                       -> booked once and more, case `duplicate`
      differing in a field                 -> case `mismatch`
      matching, succeeded                  -> found_succeeded
      matching, still working              -> found_pending     (where it is pending: look again,
                                              a case `overdue_pending` after a day)
      matching, finally negative           -> found_failed, if every other attempt is explained:
                                              by its own answer, by a key that keeps refusals, or
                                              by a complete lookup after the quiet period
  an attempt was refused                   -> found_failed, if every other one is explained so
  the provider keeps a 401 or 429 for us   -> case `poison`: this key never pays, and no new one
  it is unknown and nothing was executed,
  each sender says so, or a complete lookup
  that started after the quiet period,
      approved for ten minutes more        -> proved_absent, sendable again
      otherwise, or by an accepted figure  -> proved_not_executed
  patience is over                         -> case `unresolved`
  nothing shown twice, and the key lives   -> Resend: same key, same bytes
  nothing shown, or no readable answer     -> look again
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciliation.afterwards import once_ended, only_listed, vanished
from reconciliation.known import (
    AttemptView,
    Decision,
    LookUpAgain,
    OpenCase,
    Resend,
    Rest,
    Settle,
    View,
)
from reconciliation.matching import Finding, Verdict
from reconciliation.patience import look_again, next_look, over_patience
from reconciliation.proof import (
    Proof,
    absence,
    may_resend,
    others_explained,
    refused,
    shows_all_there_is,
)
from refunds.domain import states
from refunds.domain.contract import Accepted, ProviderContract, as_accepted
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers.base import StatusWords

__all__ = [
    "SAID_NO",
    "AttemptView",
    "Decision",
    "LookUpAgain",
    "OpenCase",
    "Resend",
    "Rest",
    "Settle",
    "View",
    "decide",
    "next_look",
    "over_patience",
]

_DAY = timedelta(days=1)
# No money moved by it, says its state.
SAID_NO = frozenset(
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


def decide(
    view: View,
    finding: Finding | None,
    *,
    contract: ProviderContract,
    words: StatusWords,
    limits: Limits,
    now: datetime,
    looked_at: datetime | None = None,
    accepted: Iterable[Accepted] = (),
) -> Decision:
    """The one decision that follows.

    `finding` is None where nothing could be asked or read; `looked_at` is when its lookup started.
    `contract` is the stricter of today's and those of the attempts, `accepted` what holds now.
    """
    accepted = tuple(accepted)
    late = once_ended(view, finding, words)
    if late is None:
        late = vanished(view, finding, looked_at, contract, limits, now)
    if late is not None:
        return late
    if finding is not None and view.state in SAID_NO and _may_have_moved(finding, words):
        # As it is, an answer of people could lead to a send.
        clear = finding.verdict is Verdict.MATCH and _is_known(finding, words)
        return Settle("contradicted", finding.because, finding.record if clear else None)
    if finding is not None and finding.verdict is Verdict.DUPLICATE:
        return _paid_twice(view, finding, words)
    if finding is not None and finding.verdict is Verdict.DIFFERS:
        return OpenCase("mismatch", finding.because)
    if finding is not None and finding.verdict is Verdict.MATCH:
        assert finding.record is not None
        by = _explained_by(view, finding, looked_at, contract, accepted, limits, now)
        return _matched(view, finding, finding.record, contract, words, limits, now, by)
    if view.sighted:
        return only_listed(view, finding, contract, limits, now, accepted)
    proof = absence(view, finding, looked_at, contract, accepted, limits)
    if view.state in (states.UNKNOWN, states.AUTHORIZED) and refused(view):
        if others_explained(view, contract, limits, now, besides_found=False):
            return Settle("found_failed", "The provider refused it, and no other attempt can pay.")
        if proof is not None and view.state == states.UNKNOWN:
            return Settle("found_failed", proof.because, None, (), proof.covers, proof.accepted)
    if view.state == states.UNKNOWN and not view.has_case and _kept(view, "turned_away"):
        return OpenCase(
            "poison",
            "The provider keeps a refusal at the door under our key: it answers that each time.",
        )
    if view.state == states.UNKNOWN and proof is not None:
        return _proved(view, proof, limits, now)
    if view.state not in states.UNCERTAIN:
        return Rest() if not view.has_case else LookUpAgain(now + _DAY)
    return _wait(view, finding, contract, limits, now, looked_at, accepted)


def _matched(
    view: View,
    finding: Finding,
    record: RefundRecord,
    contract: ProviderContract,
    words: StatusWords,
    limits: Limits,
    now: datetime,
    explained_by: tuple[int, ...] | None,
) -> Decision:
    status, because = record.provider_status, finding.because
    if status in words.succeeded:
        if view.state == states.SUCCEEDED:
            if view.booked_ref == record.ref:
                return Rest()
            return OpenCase("contradiction", f"Booked as {view.booked_ref}. {because}")
        return Settle("found_succeeded", because, record)
    if status in words.pending:
        if view.state == states.PENDING:
            return _wait(view, finding, contract, limits, now, None, ())
        if view.state in states.UNCERTAIN:
            return Settle("found_pending", because, record)
        return OpenCase("contradiction", because)
    if status in words.failed:
        if view.state in states.UNCERTAIN:
            if explained_by is not None:
                return Settle("found_failed", because, record, accepted=explained_by)
            return look_again(view, contract, limits, now)
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


def _explained_by(
    view: View,
    finding: Finding,
    looked_at: datetime | None,
    contract: ProviderContract,
    accepted: tuple[Accepted, ...],
    limits: Limits,
    now: datetime,
) -> tuple[int, ...] | None:
    """What explains every attempt but the one found: ids of accepted facts; None: not explained."""
    if others_explained(view, contract, limits, now, besides_found=True):
        return ()
    if shows_all_there_is(view, finding, looked_at, contract, accepted, limits):
        return as_accepted(contract, accepted, "absence")[1]
    return None


def _may_have_moved(finding: Finding, words: StatusWords) -> bool:
    """Whether a refund of ours is shown, and not all that are shown are finally negative."""
    ours = [each.record for each in finding.candidates if each.ours]
    if finding.record is not None:
        ours.append(finding.record)
    return any(each.provider_status not in words.failed for each in ours)


def _is_known(finding: Finding, words: StatusWords) -> bool:
    record = finding.record
    return record is not None and record.provider_status in words.succeeded | words.pending


def _kept(view: View, kind: str) -> bool:
    return any(each.kept == kind for each in view.attempts)


def _proved(view: View, proof: Proof, limits: Limits, now: datetime) -> Settle:
    """Nothing was executed: sendable again where all that a send needs still holds, else ended.

    What two people accepted may end it and never send it (rule 43), and neither may a key under
    which the provider keeps an error. Five attempts are enough for every kind of key.
    """
    left = timedelta(seconds=limits.approval_left_seconds)
    again = (
        not proof.accepted
        and not (view.halted or view.has_case)
        and not any(each.kept for each in view.attempts)
        and len(view.attempts) < limits.attempts_max
        and view.sendable_until is not None
        and view.sendable_until >= now + left
    )
    event = "proved_absent" if again else "proved_not_executed"
    return Settle(event, proof.because, None, (), proof.covers, proof.accepted)


def _wait(
    view: View,
    finding: Finding | None,
    contract: ProviderContract,
    limits: Limits,
    now: datetime,
    looked_at: datetime | None,
    accepted: tuple[Accepted, ...],
) -> Decision:
    """Nothing follows yet: ask a person once patience is over, else send or ask again."""
    if view.state == states.UNKNOWN and not view.has_case:
        why = over_patience(view, contract, limits, now, accepted)
        if why:
            return OpenCase("unresolved", why)
        if may_resend(view, finding, looked_at, contract, accepted, limits, now):
            return Resend("Nothing of it is shown, and its key still makes it the same refund.")
    overdue = now - view.entered_at >= timedelta(seconds=limits.escalation_age_seconds)
    if not view.has_case and view.state == states.PENDING and overdue:
        return OpenCase("overdue_pending", "The provider has been working on it for a day.")
    return look_again(view, contract, limits, now, accepted)
