"""The state machine of an operation, as data, on one screen.

Four places show this table and a test holds them equal: this module, README, the CHECK that the
migration generates from `moves()`, and `manage.py show_machine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

NONE: Final = "none"
PROPOSED: Final = "proposed"
AWAITING_APPROVAL: Final = "awaiting_approval"
AUTHORIZED: Final = "authorized"
SUBMITTING: Final = "submitting"
PENDING: Final = "pending"
UNKNOWN: Final = "unknown"
SUCCEEDED: Final = "succeeded"
MISMATCHED: Final = "mismatched"
RETURNED: Final = "returned"
FAILED: Final = "failed"
DENIED: Final = "denied"
REJECTED: Final = "rejected"
WITHDRAWN: Final = "withdrawn"
EXPIRED: Final = "expired"

# state -> may money have moved?
MONEY: Final[dict[str, str]] = {
    PROPOSED: "no",
    AWAITING_APPROVAL: "no",
    AUTHORIZED: "no",
    SUBMITTING: "maybe",
    PENDING: "maybe",
    UNKNOWN: "maybe",
    SUCCEEDED: "yes",
    MISMATCHED: "yes",
    RETURNED: "yes",  # and it came back
    FAILED: "no",
    DENIED: "no",
    REJECTED: "no",
    WITHDRAWN: "no",
    EXPIRED: "no",
}
STATES: Final = tuple(MONEY)
ENDED: Final = frozenset(
    {SUCCEEDED, MISMATCHED, RETURNED, FAILED, DENIED, REJECTED, WITHDRAWN, EXPIRED}
)
OPEN: Final = frozenset(STATES) - ENDED
UNCERTAIN: Final = frozenset({SUBMITTING, UNKNOWN, PENDING})
# States in which the operation's amount is set aside on its payment (`authorized` holds it too
# after `not_executed`; the reservation row says which).
HOLDING: Final = frozenset({SUBMITTING, PENDING, UNKNOWN})

CALLER: Final = "caller"
POLICY: Final = "policy"
APPROVERS: Final = "approvers"
APPROVER: Final = "approver"
LEAD: Final = "lead"
DISPATCHER: Final = "dispatcher"
RECONCILER: Final = "reconciler"
OPERATORS: Final = "operators"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table: `event` moves any of `sources` to `target`, caused by one of `by`."""

    event: str
    sources: tuple[str, ...]
    target: str
    by: tuple[str, ...]
    requires: str


RULES: Final[tuple[Rule, ...]] = (
    Rule("proposed", (NONE,), PROPOSED, (CALLER,), "a well-formed proposal"),
    Rule("policy_denied", (PROPOSED,), DENIED, (POLICY,), "a check refused"),
    Rule("policy_held", (PROPOSED,), AWAITING_APPROVAL, (POLICY,), "people must decide"),
    Rule("policy_cleared", (PROPOSED,), AUTHORIZED, (POLICY,), "tier 0; never a possible repeat"),
    Rule("approved", (AWAITING_APPROVAL,), AUTHORIZED, (APPROVERS,), "quorum of this round"),
    Rule("rejected", (AWAITING_APPROVAL,), REJECTED, (APPROVER,), "a reason"),
    Rule(
        "withdrawn",
        (PROPOSED, AWAITING_APPROVAL, AUTHORIZED),
        WITHDRAWN,
        (CALLER, LEAD),
        "nothing in flight; releases a kept reservation",
    ),
    Rule("expired", (AWAITING_APPROVAL,), EXPIRED, (POLICY,), "nobody decided in time"),
    Rule(
        "approval_revoked",
        (AUTHORIZED,),
        AWAITING_APPROVAL,
        (APPROVER,),
        "before the claim; releases a kept reservation; round + 1",
    ),
    Rule(
        "approval_lapsed",
        (AUTHORIZED,),
        AWAITING_APPROVAL,
        (POLICY,),
        "stale: version, expiry, balance, authority; releases; round + 1",
    ),
    Rule("submission_started", (AUTHORIZED,), SUBMITTING, (DISPATCHER,), "the claim statement"),
    Rule("resubmitted", (UNKNOWN,), SUBMITTING, (DISPATCHER,), "key-window resend, rule 18"),
    Rule(
        "not_executed",
        (SUBMITTING,),
        AUTHORIZED,
        (DISPATCHER,),
        "every attempt is not_sent or turned_away; reservation kept; back-off",
    ),
    Rule("confirmed", (SUBMITTING,), SUCCEEDED, (DISPATCHER,), "booked by the same statement"),
    Rule("accepted", (SUBMITTING,), PENDING, (DISPATCHER,), "the provider is working on it"),
    Rule("refused", (SUBMITTING,), FAILED, (DISPATCHER,), "every other attempt explained"),
    Rule("unanswered", (SUBMITTING,), UNKNOWN, (DISPATCHER,), "the default"),
    Rule("lease_ended", (SUBMITTING,), UNKNOWN, (RECONCILER,), "closes the slot, outcome empty"),
    Rule(
        "found_succeeded",
        (UNKNOWN, PENDING, SUBMITTING),
        SUCCEEDED,
        (RECONCILER,),
        "match, booked",
    ),
    Rule("found_pending", (UNKNOWN, SUBMITTING), PENDING, (RECONCILER,), "match, not finished"),
    Rule(
        "found_failed",
        (UNKNOWN, PENDING, SUBMITTING, AUTHORIZED),
        FAILED,
        (RECONCILER,),
        "final negative status and every other attempt explained",
    ),
    Rule("proved_absent", (UNKNOWN,), AUTHORIZED, (RECONCILER,), "absence proved; may be sent"),
    Rule("proved_not_executed", (UNKNOWN,), FAILED, (RECONCILER,), "absence proved, otherwise"),
    Rule("adopted", (NONE,), UNKNOWN, (OPERATORS,), "a refund another system left stuck"),
    Rule("ruled_happened", (UNKNOWN, PENDING), SUCCEEDED, (OPERATORS,), "evidence and people"),
    Rule("ruled_different", (UNKNOWN, PENDING), MISMATCHED, (OPERATORS,), "two people"),
    Rule("ruled_not_happened", (UNKNOWN, PENDING), FAILED, (OPERATORS,), "two people and proof"),
    Rule("taken_back", (SUCCEEDED, MISMATCHED), RETURNED, (RECONCILER,), "the money came back"),
    Rule(
        "contradicted",
        (
            FAILED,
            RETURNED,
            MISMATCHED,
            DENIED,
            REJECTED,
            WITHDRAWN,
            EXPIRED,
            AUTHORIZED,
            AWAITING_APPROVAL,
        ),
        UNKNOWN,
        (RECONCILER,),
        "evidence that money moved: halts, holds again without guard, opens a case",
    ),
    Rule(
        "ruling_contradicted",
        (SUCCEEDED, MISMATCHED),
        UNKNOWN,
        (RECONCILER,),
        "the end rests on a ruling only: un-books, halts, opens a case",
    ),
)


class IllegalMove(Exception):
    """No rule lets this event leave this state, or not by this kind of actor."""


def moves() -> Iterator[tuple[str, str, str, str]]:
    """Every legal (event, from_state, to_state, actor_kind), for the CHECK and the equality test."""
    for rule in RULES:
        for source in rule.sources:
            for kind in rule.by:
                yield rule.event, source, rule.target, kind


def rule_for(event: str, source: str, kind: str) -> Rule:
    """The rule that allows `event` out of `source` by `kind`; raises IllegalMove otherwise."""
    for rule in RULES:
        if rule.event == event and source in rule.sources:
            if kind in rule.by:
                return rule
            raise IllegalMove(f"{event} may be caused by {', '.join(rule.by)}, not by {kind}")
    raise IllegalMove(f"{event} does not leave {source}")
