"""What `decide` is asked: operations, attempts and findings, with values of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciliation.decide import (
    AttemptView,
    Decision,
    View,
    decide,
)
from reconciliation.matching import Finding, Verdict
from refunds.domain import states
from refunds.domain.contract import ProviderContract
from refunds.domain.limits import Limits
from refunds.domain.outcome import RefundRecord
from refunds.providers import plain, plain_contracts

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIMITS = Limits()
MAIN = plain_contracts.CONTRACTS["plain-main"]
FOREVER = plain_contracts.CONTRACTS["plain-forever"]
NO_KEYS = plain_contracts.CONTRACTS["plain-nokeys"]
BLIND = plain_contracts.CONTRACTS["plain-blind"]
RECORD = RefundRecord(
    ref="rf_0010",
    payment_ref="pi_4821",
    amount_minor=7900,
    currency="USD",
    provider_status="succeeded",
    marker="0190a5c2",
    created_at=NOON,
)
SAID_NO = [
    *(states.FAILED, states.RETURNED, states.DENIED, states.REJECTED, states.WITHDRAWN),
    *(states.EXPIRED, states.AUTHORIZED, states.AWAITING_APPROVAL),
]
UNCERTAIN = [states.SUBMITTING, states.UNKNOWN, states.PENDING]
CANNOT_TELL = Finding(verdict=Verdict.CANNOT_TELL, because="HTTP 503.")
ABSENT = Finding(verdict=Verdict.ABSENT, because="none of ours")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def attempt(no: int = 1, outcome: str | None = "unanswered", **changes: Any) -> AttemptView:
    values: dict[str, Any] = {
        "no": no,
        "outcome": outcome,
        "recorded_at": NOON,
        "send_deadline": at(2),
        "stop_proof_at": at(1) if outcome else None,
        "settled_by_evidence": False,
    }
    return AttemptView(**(values | changes))


def view(state: str = states.UNKNOWN, *attempts: AttemptView, **changes: Any) -> View:
    values: dict[str, Any] = {
        "state": state,
        "entered_at": NOON,
        "unknown_since": NOON if state == states.UNKNOWN else None,
        "attempts": attempts or (attempt(),),
        "has_case": False,
        "inconclusive_at": (),
        "booked_ref": None,
    }
    return View(**(values | changes))


def shown(status: str = "succeeded", **changes: Any) -> Finding:
    record = replace(RECORD, provider_status=status, **changes)
    return Finding(verdict=Verdict.MATCH, because="it matches", record=record)


def decided(
    seen: View,
    finding: Finding | None,
    *,
    now: float = 1,
    contract: ProviderContract = MAIN,
    limits: Limits = LIMITS,
) -> Decision:
    return decide(seen, finding, contract=contract, words=plain.WORDS, limits=limits, now=at(now))
