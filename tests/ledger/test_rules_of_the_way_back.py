"""Rules 29 to 37: from submitting back to authorized, and what a refusal outranks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch
from refunds.domain import states
from refunds.domain.contract import Fact, ProviderContract
from refunds.domain.outcome import Answer, Outcome, RawAnswer
from refunds.ledger import Actor, Claim, record_answer
from refunds.models import Evidence, Operation, Payment, Reservation
from refunds.providers.plain import CONTRACTS
from tests import build
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import (
    earlier_attempt,
    held_equals_reservations,
    history,
    outcomes,
    proved_absent,
    resubmitted,
    sent,
    state_of,
)
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    BEFORE_THE_CALL,
    creates,
    lease_ends,
    make_due,
    past_the_send_deadline,
    ready,
    refunds,
    run,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = {"send_deadline_seconds": 0.2}
KEYS = ["plain-nokeys", "plain-main", "plain-forever"]


def held(operation: Operation) -> tuple[int, str]:
    """What the payment holds, and the state of the operation's reservation."""
    payment = Payment.objects.get(pk=operation.payment_id)
    return payment.held_minor, Reservation.objects.get(operation=operation).state


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


# Rule 34: a refusal outranks


def test_rule_34_a_refusal_read_late_in_authorized_ends_it(
    provider: SandboxProcess, cast: Cast, troupe: Troupe
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    provider.configure("plain-nokeys", reasons_accepted=[])
    sleeper = troupe.actor("send", [operation], stop_at=ANSWER_IN_HAND)
    sleeper.go()
    sleeper.reaches(ANSWER_IN_HAND)
    lease_ends(operation)
    reconciler.look_up(operation.pk)
    absence = Evidence.objects.get(operation=operation, kind="lookup")
    proved_absent(operation, absence.pk)
    assert sleeper.finish() == {str(operation.pk): "late"}
    assert outcomes(operation) == ["refused"]
    provider.configure("plain-nokeys", reasons_accepted=None)
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert len(creates(provider)) == 1
    assert (state_of(operation), operation.halted) == (states.AUTHORIZED, True)
    assert reconciler.look_up(operation.pk) == "Settle"
    assert (state_of(operation), held(operation)) == (states.FAILED, (0, "released"))
    assert refunds(provider, operation) == []


@pytest.mark.parametrize("covered", [False, True])
def test_rule_34_nothing_is_claimed_after_a_known_refusal(
    provider: SandboxProcess, cast: Cast, covered: bool
) -> None:
    """Neither a lifted halt nor an absence that covers the attempt makes it sendable."""
    operation = ready(provider, cast)
    earlier_attempt(operation, "refused", timezone.now())
    if covered:
        run("UPDATE attempt SET settled_by_evidence = 1 WHERE operation_id = %s", operation.pk)
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert creates(provider) == []
    assert state_of(operation) == states.AUTHORIZED
    assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.FAILED


@pytest.mark.parametrize("covered", [False, True])
def test_rule_34_not_executed_after_a_refusal_does_not_lead_back(
    provider: SandboxProcess, cast: Cast, covered: bool
) -> None:
    operation = ready(provider, cast, account="plain-nokeys")
    provider.fault("drop_before_commit", account="plain-nokeys")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    provider.configure("plain-nokeys", reasons_accepted=[])
    assert sent(resubmitted(operation)) == "unanswered"
    provider.configure("plain-nokeys", reasons_accepted=None)
    if covered:
        run("UPDATE attempt SET settled_by_evidence = 1 WHERE operation_id = %s", operation.pk)
    provider.fault("rate_429", account="plain-nokeys")
    assert sent(resubmitted(operation)) == "unanswered"
    assert outcomes(operation) == ["unanswered", "refused", "turned_away"]
    assert state_of(operation) == states.UNKNOWN


# Rules 35 and 37: whether the key explains another attempt


def refused_beside_an_ambiguous_one(
    operation: Operation, contract: ProviderContract, *, skew_seconds: int = 0
) -> str | None:
    """Attempt 2 is refused under this contract, attempt 1 unanswered; the event it caused."""
    claim = resubmitted(operation)
    return answered(claim, Outcome.REFUSED, contract, skew_seconds=skew_seconds)


def answered(
    claim: Claim, outcome: Outcome, contract: ProviderContract, *, skew_seconds: int = 0
) -> str | None:
    recorded = record_answer(
        claim,
        Answer(outcome=outcome, because="test"),
        RawAnswer(status=422, first_byte_at=timezone.now(), closed_at=timezone.now()),
        account="plain-main",
        contract=contract,
        limits=replace(settings.LIMITS, skew_seconds=skew_seconds),
        started_at=timezone.now(),
        worker="test",
    )
    return recorded.event


FOREVER = CONTRACTS["plain-forever"]
WINDOW = CONTRACTS["plain-main"]


@pytest.mark.parametrize(
    ("contract", "event"),
    [
        (FOREVER, "refused"),
        (WINDOW, "refused"),
        (FOREVER.with_changes(rejections_stored=False), "unanswered"),
        (WINDOW.with_changes(rejections_stored=False), "unanswered"),
        (WINDOW.with_changes(key_window=Fact(None, "unknown", "")), "unanswered"),
        (CONTRACTS["plain-nokeys"], "unanswered"),
        (CONTRACTS["plain-nokeys"].with_changes(rejections_stored=True), "unanswered"),
        (CONTRACTS["plain-weak"].with_changes(rejections_stored=True), "unanswered"),
    ],
)
def test_rule_35_the_key_explains_another_attempt_only_where_refusals_are_stored_under_it(
    provider: SandboxProcess, cast: Cast, contract: ProviderContract, event: str
) -> None:
    operation = ready(provider, cast)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert refused_beside_an_ambiguous_one(operation, contract) == event
    expected = states.FAILED if event == "refused" else states.UNKNOWN
    assert state_of(operation) == expected
    assert held(operation) == ((0, "released") if event == "refused" else (7900, "held"))


def test_rule_35_a_refusal_that_was_not_stored_lets_the_first_attempt_pay_afterwards(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The whole trace: refused, then the earlier copy lands and pays, under a weak key."""
    operation = ready(provider, cast, account="plain-weak")
    provider.fault("land_late", account="plain-weak", seconds=1.5)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    provider.configure("plain-weak", reasons_accepted=[])
    assert sent(resubmitted(operation)) == "unanswered"
    provider.configure("plain-weak", reasons_accepted=None)
    provider.advance(1.6)
    assert len(refunds(provider, operation)) == 1
    assert state_of(operation) == states.UNKNOWN
    assert reconciler.look_up(operation.pk) == "Settle"
    assert state_of(operation) == states.SUCCEEDED


@pytest.mark.parametrize(
    ("age_seconds", "skew_seconds", "event"),
    [(590, 0, "refused"), (601, 0, "unanswered"), (590, 20, "unanswered")],
)
def test_rule_37_the_key_window_runs_from_the_first_attempt_turned_away_or_not(
    provider: SandboxProcess, cast: Cast, age_seconds: int, skew_seconds: int, event: str
) -> None:
    """The provider may have seen the key with the attempt that it turned away."""
    operation = ready(provider, cast)
    first = timezone.now() - timedelta(seconds=age_seconds)
    earlier_attempt(operation, "turned_away", first)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert outcomes(operation) == ["turned_away", "unanswered"]
    assert refused_beside_an_ambiguous_one(operation, WINDOW, skew_seconds=skew_seconds) == event


def test_rule_37_not_executed_is_no_reason_for_a_new_key(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = ready(provider, cast)
    provider.fault("auth_403")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    make_due(operation)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert {call["key"] for call in creates(provider)} == {operation.provider_key}


# Rule 36: one reservation, kept


def turned_away(provider: SandboxProcess, cast: Cast) -> Operation:
    operation = ready(provider, cast)
    provider.fault("rate_429")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    operation.refresh_from_db()
    assert held(operation) == (7900, "held")
    return operation


def test_rule_36_the_second_send_takes_no_money_again(provider: SandboxProcess, cast: Cast) -> None:
    """Twice the amount would not even fit into the payment."""
    operation = turned_away(provider, cast)
    version = operation.send_version
    make_due(operation)
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert held(operation) == (7900, "held")
    operation.refresh_from_db()
    assert operation.send_version == version == operation.order.version
    assert reconciler.look_up(operation.pk) == "Settle"
    assert held(operation) == (0, "booked")
    assert Payment.objects.get().refunded_minor == 7900


def expires(operation: Operation, cast: Cast) -> None:
    run("UPDATE operation SET expires_at = clock_timestamp(), not_before = NULL")
    assert dispatch.send(str(operation.pk)) == "lapsed"


RELEASES: dict[str, Any] = {
    "withdrawn": lambda o, c: approvals.withdraw(o.pk, by=Actor(states.LEAD, "person:ben")),
    "revoked": lambda o, c: approvals.revoke(o.pk, c.ben, version=o.version),
    "lapsed": expires,
}


@pytest.mark.parametrize("how", sorted(RELEASES))
def test_rule_36_whatever_ends_the_approval_gives_the_money_back(
    provider: SandboxProcess, cast: Cast, how: str
) -> None:
    operation = turned_away(provider, cast)
    RELEASES[how](operation, cast)
    assert held(operation) == (0, "released")
    assert operation.order.moves.filter(cause="released").count() == 1
    assert state_of(operation) in (states.WITHDRAWN, states.AWAITING_APPROVAL)
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(creates(provider)) == 1


def test_rule_36_approved_again_it_takes_the_money_anew(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = turned_away(provider, cast)
    approvals.revoke(operation.pk, cast.ben, version=operation.version)
    approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert held(operation) == (7900, "held")
    assert held_equals_reservations()


@pytest.mark.parametrize("what", ["the order moved", "the approver has lost the role", "halted"])
def test_rule_36_the_second_send_passes_every_check_of_the_first(
    provider: SandboxProcess, cast: Cast, what: str
) -> None:
    operation = turned_away(provider, cast)
    make_due(operation)
    if what == "the order moved":
        build.external_refund("4821", 1000)
    elif what == "halted":
        run("UPDATE payment SET halted = true")
    else:
        cast.ben.groups.clear()
    assert dispatch.send(str(operation.pk)) == ("waiting" if what == "halted" else "lapsed")
    assert held(operation) == ((7900, "held") if what == "halted" else (0, "released"))
    assert len(creates(provider)) == 1
