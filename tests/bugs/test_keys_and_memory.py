"""Public reports of retries, keys and what a provider remembers of them: B014 to B032."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from reconciliation import monitors, reconciler, sweep
from refunds import approvals, dispatch, intake
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Attempt, Evidence, Operation, Payment, ProviderRefund
from tests import build
from tests.bugs.conftest import Change
from tests.bugs.history import let_pass
from tests.bugs.programs import Program
from tests.bugs.races import order_held, until, until_waiting
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    creates,
    events_of,
    open_reasons,
    state_of,
)
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_b014_while_an_answer_is_lost_the_same_refund_is_refused_whoever_asks(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = answer_lost(provider, cast)
    for caller in (intake.Caller(agent=cast.foxtrot), intake.Caller(person=cast.cleo)):
        with pytest.raises(Refusal) as refused:
            intake.propose(build.request(request_ref="return-17"), caller)
        assert (refused.value.code, refused.value.status) == ("equivalent_unresolved", 409)
        assert refused.value.operation_id == first.pk
    reconciler.look_up(first.pk)
    again = intake.propose(build.request(), intake.Caller(agent=cast.foxtrot))
    assert (again.outcome, again.operation.pk) == ("already_done", first.pk)
    assert Operation.objects.count() == 1
    assert [call["key"] for call in creates(provider)] == [first.provider_key]
    assert len(provider.refunds("plain-main")) == 1


@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
@pytest.mark.parametrize("fault", ["drop_after_commit", "reset_before"])
def test_b016_a_connection_that_drops_is_one_call_under_our_own_key(
    provider: SandboxProcess, cast: Cast, account: str, fault: str
) -> None:
    operation = authorized(provider, cast, account)
    provider.fault(fault, account=account, times=None)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    [call] = creates(provider, account)
    assert (call["key"], call["answered"]) == (operation.provider_key, "dropped")
    assert Attempt.objects.get(operation=operation).outcome == "unanswered"
    assert state_of(operation) == states.UNKNOWN


def test_b018_two_refunds_under_one_key_are_a_duplicate_and_both_count(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    provider.fault("execute_twice")
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert open_reasons(operation) == ["duplicate"]
    paid = {refund["id"] for refund in provider.refunds("plain-main")}
    assert len(paid) == 2
    assert set(operation.provider_refunds.values_list("ref", flat=True)) == paid
    assert balance_of() == (0, 2 * 7900, 12900 - 2 * 7900)
    assert Payment.objects.get().halted
    assert monitors.over_refunded() == 1


def test_b018_a_second_refund_that_an_answer_kept_quiet_about_is_found_after_success(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, captured_minor=20000)
    provider.fault("execute_twice")
    assert dispatch.send(str(operation.pk)) == "confirmed"
    reconciler.look_up(operation.pk)
    assert open_reasons(operation) == ["duplicate"]
    assert balance_of() == (0, 2 * 7900, 20000 - 2 * 7900)


def test_b020_an_approved_amount_cannot_be_edited_only_proposed_anew(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    first = build.request(request_ref="return-17")
    operation = intake.propose(first, intake.Caller(agent=cast.echo)).operation
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    other_amount: dict[str, Any] = {"amount_minor": 8000, "request_ref": "return-17"}
    for code, changed in (
        ("tool_call_reused", build.request(**other_amount, tool_call_id=first.tool_call_id)),
        ("request_ref_reused", build.request(**other_amount)),
    ):
        with pytest.raises(Refusal) as refused:
            intake.propose(changed, intake.Caller(agent=cast.echo))
        assert (refused.value.code, refused.value.status) == (code, 409)
        assert refused.value.operation_id == operation.pk
    for column in ("amount_minor = 8000", "currency = 'EUR'", "body = ''", "fingerprint = ''"):
        with (
            pytest.raises(IntegrityError, match="material facts are immutable"),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"UPDATE operation SET {column} WHERE id = %s", [operation.pk])
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert [refund["amount_minor"] for refund in provider.refunds()] == [7900]


def test_b022_an_honest_second_refund_of_the_same_amount_is_a_second_refund(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = authorized(provider, cast, amount_minor=500, captured_minor=1000)
    caller = intake.Caller(agent=cast.echo)
    with pytest.raises(Refusal) as refused:
        intake.propose(build.request(amount_minor=500, separate_from=first.pk), caller)
    assert refused.value.code == "equivalent_unresolved"
    assert refused.value.operation_id == first.pk
    assert dispatch.send(str(first.pk)) == "confirmed"

    unsaid = intake.propose(build.request(amount_minor=500), caller)
    assert (unsaid.outcome, unsaid.operation.pk) == ("already_done", first.pk)
    second = build.proposed(cast.echo, amount_minor=500, separate_from=first.pk)
    with pytest.raises(Refusal) as unticked:
        approvals.approve(second.pk, cast.ben, build.shown(second))
    assert unticked.value.code == "proof_missing"
    approvals.approve(second.pk, cast.ben, build.shown(second, tick=True))
    assert dispatch.send(str(second.pk)) == "confirmed"

    refunds = provider.refunds("plain-main")
    assert [refund["key"] for refund in refunds] == [first.provider_key, second.provider_key]
    assert [refund["amount_minor"] for refund in refunds] == [500, 500]
    booked = ProviderRefund.objects.filter(counts=True).order_by("pk")
    assert [row.ref for row in booked] == [refund["id"] for refund in refunds]
    assert balance_of() == (0, 1000, 0)


def test_b024_a_429_that_speaks_of_a_duplicate_is_looked_up_and_not_sent_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    provider.fault("duplicate_429", times=None)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    reconciler.look_up(operation.pk)
    assert dispatch.ready(10) == []
    assert dispatch.send(str(operation.pk)) == "gone"
    assert len(creates(provider)) == 1


def test_b024_a_429_of_the_limiter_waits_and_goes_out_under_the_same_key(
    provider: SandboxProcess, cast: Cast, limits: Change
) -> None:
    limits(not_sent_backoff_seconds=(30,))
    operation = authorized(provider, cast)
    provider.fault("rate_429")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    assert state_of(operation) == states.AUTHORIZED
    assert dispatch.ready(10) == []
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert len(creates(provider)) == 1
    let_pass(31)
    assert dispatch.ready(10) == [str(operation.pk)]
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert {call["key"] for call in creates(provider)} == {operation.provider_key}
    assert len(provider.refunds("plain-main")) == 1


def test_b026_already_refunded_after_a_lost_answer_ends_with_our_own_refund_found(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    # It executes and says that it did not; the second send is then told "already refunded".
    provider.fault("rate_429", executed=True)
    provider.fault("already_refunded")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert dispatch.ready(10) == []
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    assert len(creates(provider)) == 2
    [refund] = provider.refunds("plain-main")
    assert operation.provider_refunds.get().ref == refund["id"]
    assert balance_of() == (0, 7900, 5000)


def test_b026_already_refunded_by_somebody_else_is_not_taken_for_ours(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, captured_minor=7900)
    outside = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 7900}
    provider.control("POST", "/external_refund", outside)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    finding = Evidence.objects.get(operation=operation, kind="lookup").facts
    assert finding["verdict"] == "absent"
    assert [each["ours"] for each in finding["candidates"]] == [False]
    assert not operation.provider_refunds.exists()
    let_pass(60)
    reconciler.look_up(operation.pk)  # ours was surely not made
    assert state_of(operation) == states.AUTHORIZED
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert not operation.provider_refunds.exists()
    assert [each["by"] for each in provider.refunds()] != ["api"]


def test_b028_two_reconcilers_at_once_link_one_refund_once(
    provider: SandboxProcess, cast: Cast, two_programs: list[Program]
) -> None:
    operation = answer_lost(provider, cast)
    with order_held("4821"):
        for each in two_programs:
            each.tell("look_up", operation=str(operation.pk))
        until_waiting(2)
    said = {str(each.hear()["result"]) for each in two_programs}
    assert "Settle" in said
    assert said <= {"Settle", "overtaken", "Rest"}
    assert events_of(operation).count("found_succeeded") == 1
    row = ProviderRefund.objects.get()
    assert row.ref == provider.refunds("plain-main")[0]["id"]
    assert balance_of() == (0, 7900, 5000)
    row.pk = None
    with pytest.raises(IntegrityError, match="provider_refund_ref"), transaction.atomic():
        row.save(force_insert=True)


def test_b030_a_worker_killed_between_claim_and_call_blocks_nothing_and_sends_nothing(
    provider: SandboxProcess, cast: Cast, program: Program
) -> None:
    operation = authorized(provider, cast)
    program.tell("send", operation=str(operation.pk), at_the_wire="SIGKILL")
    assert program.until_dead() == -signal.SIGKILL
    until(lambda: state_of(operation) == states.SUBMITTING)
    assert sweep.end_leases(timezone.now()) == 0
    let_pass(61)
    assert sweep.end_leases(timezone.now()) == 1
    assert state_of(operation) == states.UNKNOWN
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.AUTHORIZED
    assert Evidence.objects.get(kind="lookup").facts["verdict"] == "absent"
    assert creates(provider) == []
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert len(creates(provider)) == 1


def test_b032_told_that_its_key_is_in_progress_it_waits_and_takes_no_other_key(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    provider.fault("rate_429")
    provider.fault("busy_409")
    assert dispatch.send(str(operation.pk)) == "not_executed"
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    assert dispatch.ready(10) == []
    assert str(operation.pk) not in reconciler.due(timezone.now(), batch_max=10)
    let_pass(2)
    assert str(operation.pk) in reconciler.due(timezone.now(), batch_max=10)
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    assert [call["key"] for call in creates(provider)] == [operation.provider_key] * 2
    with (
        pytest.raises(IntegrityError, match="material facts are immutable"),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE operation SET provider_key = gen_random_uuid()::text")
