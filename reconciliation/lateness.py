"""What shows an accepted figure to be false (rule 44). Pure.

A late copy that its key absorbed leaves no trace, and the first duplicate may come before any
warning: this protects the next refund, not this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from reconciliation.known import View
from reconciliation.matching import Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import Accepted, ProviderContract
from refunds.domain.limits import Limits

# We had said that no money moves.
_NO = frozenset({states.FAILED, states.AUTHORIZED, states.AWAITING_APPROVAL, states.WITHDRAWN})


def proved_false(
    view: View,
    finding: Finding,
    contract: ProviderContract,
    accepted: Iterable[Accepted],
    limits: Limits,
) -> dict[int, str]:
    """The ids of the accepted facts that this finding shows to be false, each with why.

    Measured from the last possible write of the latest attempt, never from the first: at every
    successful resend that would be a false alarm. An attempt's own answer comes within the call's
    total time, which is shorter than any figure worth accepting, and is not asked.
    """
    accepted = tuple(accepted)
    if finding.verdict is Verdict.DUPLICATE:
        return _resting(view, accepted, "More than one refund was made of it.")
    if finding.verdict is not Verdict.MATCH or finding.record is None or not view.attempts:
        return {}
    if view.state in _NO and view.rested_on and finding.record.provider_status != "failed":
        return _resting(view, accepted, "It happened although its absence had been concluded.")
    created = finding.record.created_at
    if created is None:
        return {}
    idle = timedelta(seconds=contract.idle_close.seconds or 0)
    last = max(each.stop_proof_at or each.send_deadline + idle for each in view.attempts)
    late = (created - last).total_seconds() - 2 * limits.skew_seconds
    return {
        each.id: f"It was executed {late:.0f} s after the last possible write, later than"
        f" {each.seconds} s."
        for each in accepted
        if each.fact == "flight_max" and late > each.seconds
    }


def _resting(view: View, accepted: tuple[Accepted, ...], why: str) -> dict[int, str]:
    return {each.id: why for each in accepted if each.id in view.rested_on}
