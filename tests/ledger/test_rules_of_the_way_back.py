"""Rules 29 to 31: from submitting back to authorized, on every attempt's own word."""

from __future__ import annotations

import pytest

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import (
    held_equals_reservations,
    history,
    outcomes,
    resubmitted,
    sent,
    state_of,
)
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    BEFORE_THE_CALL,
    lease_ends,
    make_due,
    past_the_send_deadline,
    ready,
    refunds,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = {"send_deadline_seconds": 0.2}
KEYS = ["plain-nokeys", "plain-main", "plain-forever"]


@pytest.mark.parametrize("account", KEYS)
def test_rule_29_one_ambiguous_attempt_however_old_keeps_it_unknown(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    """Attempt 1 timed out, attempt 2 was not sent: nothing says that 1 did not pay."""
    operation = ready(provider, cast, account=account)
    provider.fault("drop_after_commit", account=account)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    provider.fault("refuse_connect", account=account, seconds=60)
    assert sent(resubmitted(operation)) == "unanswered"
    assert outcomes(operation) == ["unanswered", "not_sent"]
    assert state_of(operation) == states.UNKNOWN
    provider.clear_faults()
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(refunds(provider, operation)) == 1
    assert reconciler.look_up(operation.pk) == "Settle"


@pytest.mark.parametrize("account", KEYS)
def test_rule_29_every_attempt_not_executed_leads_back(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = ready(provider, cast, account=account)
    for fault in ("rate_429", "refuse_connect"):
        if fault == "rate_429":
            provider.fault(fault, account=account)
        else:
            provider.fault(fault, account=account, seconds=60)
        assert dispatch.send(str(operation.pk)) == "not_executed"
        assert state_of(operation) == states.AUTHORIZED
        assert operation.not_before is not None
        make_due(operation)
        provider.clear_faults()
    assert outcomes(operation) == ["turned_away", "not_sent"]
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(refunds(provider, operation)) == 1


def test_rule_30_a_stale_sender_moves_nothing_while_another_attempt_flies(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    stale = troupe.actor("send", [operation], stop_at=BEFORE_THE_CALL, limits=SHORT)
    stale.go()
    stale.reaches(BEFORE_THE_CALL)
    past_the_send_deadline(operation)
    lease_ends(operation)
    second = resubmitted(operation)
    assert stale.finish() == {str(operation.pk): "late"}
    assert (state_of(operation), operation.version) == (states.SUBMITTING, second.fence)
    assert outcomes(operation) == ["not_sent", None]
    assert sent(second) == "confirmed"
    assert len(refunds(provider, operation)) == 1
    assert held_equals_reservations()


@pytest.mark.parametrize("round_", range(4))
def test_rule_30_two_senders_that_answer_at_once_never_lead_back(
    provider: SandboxProcess, cast: Cast, troupe: Troupe, round_: int
) -> None:
    """Attempt 1 says *not sent* while attempt 2, whose answer was lost, says so too."""
    operation = ready(provider, cast, account="plain-nokeys")
    first = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND, limits=SHORT)
    provider.fault("refuse_connect", account="plain-nokeys", seconds=30)
    first.go()
    first.reaches(ANSWER_IN_HAND)
    provider.clear_faults()
    lease_ends(operation)
    provider.fault("drop_after_commit", account="plain-nokeys")
    second = troupe.actor("send_again", [operation], stop_at=ANSWER_IN_HAND)
    second.go()
    second.reaches(ANSWER_IN_HAND)
    for sender in (first, second) if round_ % 2 else (second, first):
        sender.go()
    assert first.result() == {str(operation.pk): "late"}
    assert second.result() == {str(operation.pk): "unanswered"}
    assert outcomes(operation) == ["not_sent", "unanswered"]
    assert state_of(operation) == states.UNKNOWN
    assert "not_executed" not in history(operation)
    assert len(refunds(provider, operation)) == 1


@pytest.mark.parametrize(
    ("fault", "envelope", "back"),
    [
        ("rate_429", "own", True),
        ("auth_401", "own", True),
        ("auth_403", "own", True),
        ("rate_429", "foreign", False),
        ("auth_401", "foreign", False),
        ("auth_403", "foreign", False),
        ("duplicate_429", "own", False),
    ],
)
@pytest.mark.parametrize("account", ["plain-nokeys", "stripe-main"])
def test_rule_31_turned_away_is_the_providers_own_envelope_with_a_listed_code(
    provider: SandboxProcess, cast: Cast, account: str, fault: str, envelope: str, back: bool
) -> None:
    """A hop in front may answer 429 and have passed the request on."""
    operation = ready(provider, cast, account=account)
    executed = not back
    provider.fault(fault, account=account, envelope=envelope, executed=executed)
    assert dispatch.send(str(operation.pk)) == ("not_executed" if back else "unanswered")
    assert state_of(operation) == (states.AUTHORIZED if back else states.UNKNOWN)
    assert outcomes(operation) == ["turned_away" if back else "unanswered"]
    make_due(operation)
    assert dispatch.send(str(operation.pk)) == ("confirmed" if back else "gone")
    assert len(refunds(provider, operation)) == 1
