"""Payments that always misbehave the same way, for whoever refunds them: test cards for refunds.

A payment with one of these refs, on whatever account, meets its fault on the first request of
every refund; nobody has to plan anything. A rule of the fault plan that strikes goes before.
"""

from collections.abc import Mapping

from sandbox.faults import Subject
from sandbox.operations import Fired, Twists

_CUSTOMER_ANSWERS_AFTER_SECONDS = 60

SCENARIOS: Mapping[str, Fired] = {
    "pi_demo-answer-lost": Fired("drop_after_commit", {}),
    "pi_demo-500-after-commit": Fired("error_after_commit", {}),
    "pi_demo-lookup-lags": Fired("drop_after_commit", {}),
    "pi_demo-no-lookup": Fired("drop_after_commit", {}),
    "pi_demo-turned-away": Fired("rate_429", {}),
    "pi_demo-needs-customer": Fired("ask_customer", {"seconds": _CUSTOMER_ANSWERS_AFTER_SECONDS}),
}


def scenario(subject: Subject, request_count: int) -> Twists:
    """What strikes the `request_count`-th request (from 1) that asks for this very refund."""
    fired = SCENARIOS.get(subject.payment or "")
    if fired is None or subject.on != "create" or request_count > 1:
        return Twists()
    return Twists((fired,))
