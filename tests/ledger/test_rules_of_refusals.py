"""Rules 34, 35 and 37: what a refusal outranks, and when a key explains another attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import states
from refunds.domain.contract import Fact, ProviderContract
from refunds.domain.outcome import Answer, Outcome, RawAnswer
from refunds.ledger import Claim, record_answer
from refunds.models import Evidence, Operation
from refunds.providers.plain_contracts import CONTRACTS
from tests.cast import Cast
from tests.ledger.actors import Troupe
from tests.ledger.rows import (
    earlier_attempt,
    held,
    outcomes,
    proved_absent,
    resubmitted,
    sent,
    state_of,
)
from tests.ledger.stage import (
    ANSWER_IN_HAND,
    creates,
    lease_ends,
    make_due,
    ready,
    refunds,
    run,
)
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize(
    ("seconds", "event"), [(590, "refused"), (600, "unanswered"), (None, "unanswered")]
)
def test_rule_35_a_copy_that_may_land_when_the_key_has_ended_is_no_part_of_the_refusal(
    provider: SandboxProcess, cast: Cast, seconds: int | None, event: str
) -> None:
    """The key lives for 600 s from the first record; the copy flies from its sender's stop on."""
    operation = ready(provider, cast)
    provider.fault("drop_before_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    flies = WINDOW.with_changes(flight_max=Fact(seconds, "documented", "this test"))
    assert refused_beside_an_ambiguous_one(operation, flies) == event


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
