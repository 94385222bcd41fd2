"""That nothing happened: when a lookup may say so, and what follows from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.ledger import database_now, sending
from refunds.models import Approval, Attempt, Evidence, Operation, Payment, Reservation
from tests.cast import Cast
from tests.clocks import time_passes
from tests.flows.finding import accepted, looked_up, sent_with
from tests.ledger.rows import held, history, outcomes
from tests.ledger.stage import creates, run
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def quiet_seconds(flight: int = 2, lag: int = 1) -> int:
    """D + V + 2 skew, after a sender that said how it ended."""
    return flight + lag + 2 * settings.LIMITS.skew_seconds


def test_an_absence_is_believed_after_the_quiet_period_and_the_refund_is_sent_again(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    time_passes(provider, quiet_seconds() - 2)
    assert looked_up(operation) == ["LookUpAgain"]
    assert operation.due_at is not None
    assert operation.due_at > timezone.now() + timedelta(seconds=1)  # not before it can prove
    time_passes(provider, 3)
    assert looked_up(operation) == ["Settle"]
    assert (operation.state, held(operation)) == (states.AUTHORIZED, (4000, "held"))
    assert ("refunds.tasks.send", str(operation.pk)) in rung
    absence = Evidence.objects.filter(operation=operation, kind="lookup").latest("pk")
    assert Attempt.objects.get(operation=operation).settled_by_evidence == absence.pk
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert outcomes(operation) == ["unanswered", "confirmed"]
    assert len(provider.refunds("plain-nokeys")) == 1
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor) == (4000, 0)


def test_a_lookup_that_started_before_the_quiet_period_ended_proves_nothing_however_late_it_decides(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Measured when asking, not when deciding (rule 15): the refund lands in between."""
    operation = sent_with(provider, cast, "land_late", "plain-nokeys")
    assert looked_up(operation) == ["LookUpAgain"]  # truthfully absent
    time_passes(provider, 2)
    assert len(provider.refunds("plain-nokeys")) == 1
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.SUCCEEDED


@pytest.mark.parametrize("ahead_seconds", [300, -300])
def test_a_worker_whose_clock_is_wrong_believes_an_absence_neither_earlier_nor_later(
    provider: SandboxProcess, cast: Cast, ahead_seconds: int
) -> None:
    """Its attempts were stamped by the database, and so is the lookup (rule 15)."""
    operation = sent_with(provider, cast, "land_late", "plain-nokeys", seconds=1.5)
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=ahead_seconds), tick=True):
        assert looked_up(operation) == ["LookUpAgain"]  # truthfully absent, and still to land
        assert operation.due_at is not None
        assert abs(operation.due_at - database_now()) < timedelta(seconds=60)
        time_passes(provider, quiet_seconds() + 1)
        assert looked_up(operation) == ["Settle"]
    assert operation.state == states.SUCCEEDED
    assert len(provider.refunds("plain-nokeys")) == 1


def _nearly_over(operation: Operation) -> None:
    soon = timezone.now() + timedelta(seconds=settings.LIMITS.approval_left_seconds - 1)
    run("SET session_replication_role = replica")
    Approval.objects.filter(operation=operation).update(expires_at=soon)
    run("SET session_replication_role = DEFAULT")


@pytest.mark.parametrize("why", ["the approval is nearly over", "the order is frozen"])
def test_an_absence_ends_what_may_not_be_sent_again_and_frees_its_money(
    provider: SandboxProcess, cast: Cast, why: str
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    time_passes(provider, quiet_seconds() + 1)
    if why == "the order is frozen":
        run("UPDATE orders SET frozen = true")
    else:
        _nearly_over(operation)
    assert looked_up(operation) == ["Settle"]
    assert (operation.state, held(operation)) == (states.FAILED, (0, "released"))
    assert history(operation)[-1] == "proved_not_executed"
    assert provider.refunds("plain-nokeys") == []


def test_an_absence_that_comes_while_a_person_is_asked_ends_it_and_closes_the_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    provider.fault("lookup_503", account="plain-nokeys", on="list")
    time_passes(provider, quiet_seconds() + 5)
    assert looked_up(operation) == ["OpenCase"]
    assert looked_up(operation) == ["Settle"]
    assert (operation.state, operation.halted) == (states.FAILED, False)
    assert Case.objects.get(operation=operation).closed_at is not None


def test_a_pause_or_a_stop_only_delays_what_is_proved_absent(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    sending.pause("plain-nokeys", kind="person", reason="looking into it", by="ines")
    time_passes(provider, quiet_seconds() + 1)
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.AUTHORIZED
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert len(creates(provider)) == 1


def test_while_the_database_may_have_lost_attempts_no_absence_is_believed(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    sending.begin_quarantine("a restore", {})
    time_passes(provider, quiet_seconds() + 1)
    looked_up(operation)
    assert operation.state == states.UNKNOWN


def test_a_quarantine_that_lasts_does_not_turn_what_could_be_sent_again_into_work_for_people(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    sending.begin_quarantine("a restore", {})
    time_passes(provider, 3_600)
    looked_up(operation, 3)
    assert not Case.objects.exists()
    sending.lift_quarantine(by="ines", with_="adam")
    assert looked_up(operation) == ["Settle"]
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(provider.refunds("plain-nokeys")) == 1


@pytest.mark.parametrize("account", ["plain-unbounded", "stripe-main"])
def test_without_a_bound_on_its_flight_no_age_of_an_absence_is_enough(
    provider: SandboxProcess, cast: Cast, account: str
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", account)
    time_passes(provider, 20 * 3600)
    looked_up(operation, 3)
    assert operation.state == states.UNKNOWN
    assert Case.objects.get(operation=operation).reasons == ["unresolved"]
    assert Reservation.objects.get(operation=operation).state == "held"


def test_an_accepted_absence_ends_an_operation_by_name_and_never_sends_it_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    flight = accepted(cast, "stripe-main", "flight_max", 20, "absence")
    operation = sent_with(provider, cast, "drop_before_commit", "stripe-main")
    time_passes(provider, quiet_seconds(20, 60) + 1)
    Operation.objects.update(unknown_since=timezone.now())  # nobody is asked yet
    assert looked_up(operation) == ["LookUpAgain"]  # one figure of two: nothing follows
    lag = accepted(cast, "stripe-main", "lookup_lag", 60, "absence")
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.FAILED
    event = operation.events.get(event="proved_not_executed")
    assert event.detail["accepted"] == [flight.pk, lag.pk]
    assert provider.refunds("stripe-main") == []


def test_a_refusal_beside_a_silent_attempt_ends_it_once_the_silence_is_explained(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Without keys only a complete lookup after the quiet period explains the other attempt."""
    operation = sent_with(provider, cast, "drop_before_commit", "plain-nokeys")
    time_passes(provider, 5)
    run(
        "INSERT INTO attempt (operation_id, no, fence, recorded_at, send_deadline, lease_until,"
        " closed_at, outcome, stop_proof_at, account_identity, contract_hash)"
        " SELECT operation_id, 2, fence, now(), now(), now(), now(), 'refused', now(),"
        " account_identity, contract_hash FROM attempt WHERE operation_id = %s",
        operation.pk,
    )
    Operation.objects.update(attempt_count=2)
    assert looked_up(operation) == ["LookUpAgain"]
    time_passes(provider, quiet_seconds() + 1)
    assert looked_up(operation) == ["Settle"]
    assert (operation.state, held(operation)) == (states.FAILED, (0, "released"))
    assert history(operation)[-1] == "found_failed"


def test_what_each_sender_says_was_not_executed_needs_no_lookup(
    provider: SandboxProcess, cast: Cast
) -> None:
    """The lease had ended; then the sender came back and said that it had sent nothing."""
    operation = sent_with(provider, cast, "drop_before_commit", "plain-blind")
    run("SET session_replication_role = replica")
    run("UPDATE attempt SET outcome = 'not_sent', first_byte_at = NULL")
    run("SET session_replication_role = DEFAULT")
    assert looked_up(operation) == ["Settle"]
    assert operation.state == states.AUTHORIZED
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(provider.refunds("plain-blind")) == 1
