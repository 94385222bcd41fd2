"""After a lost answer: what a lookup may conclude, what it may not, and when a person is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from reconciliation import monitors, reconciler
from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import claim, connections
from refunds.models import Attempt, Evidence, Operation, Payment, ProviderRefund
from refunds.providers import registry
from refunds.queries.results import result
from tests import build
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def sent_with(
    provider: SandboxProcess, cast: Cast, fault: str, account: str = "plain-main"
) -> Operation:
    """An approved refund whose send met this fault."""
    provider.payment(account=account)
    build.order(account=account)
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    provider.fault(fault, account=account)
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    return operation


def looked_up(operation: Operation) -> Operation:
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    return operation


@pytest.mark.parametrize(
    "fault",
    ["drop_after_commit", "error_after_commit", "stored_500", "truncated", "html_200", "bad_json"],
)
@pytest.mark.parametrize("account", ["plain-main", "stripe-main"])
def test_an_executed_refund_with_a_useless_answer_is_unknown_and_then_found(
    provider: SandboxProcess, cast: Cast, fault: str, account: str
) -> None:
    operation = sent_with(provider, cast, fault, account)
    assert operation.state == states.UNKNOWN
    assert looked_up(operation).state == states.SUCCEEDED
    [refund] = provider.refunds(account)
    assert operation.provider_refunds.get().ref == refund["id"]
    assert len([call for call in provider.calls(account) if call["method"] == "POST"]) == 1


def test_a_refund_that_never_arrived_stays_unknown_and_is_not_sent_again(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    assert looked_up(operation).state == states.UNKNOWN
    finding = Evidence.objects.get(operation=operation, kind="lookup")
    assert finding.facts["verdict"] == "absent"
    assert finding.facts["complete"] is True
    assert operation.due_at is not None
    assert operation.due_at > timezone.now()
    assert Payment.objects.get().held_minor == 4000
    assert provider.refunds() == []


def test_a_lagging_lookup_proves_nothing_until_the_refund_shows(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit", "plain-lagged")
    assert looked_up(operation).state == states.UNKNOWN
    provider.advance(4)
    assert looked_up(operation).state == states.SUCCEEDED


@pytest.mark.parametrize("fault", ["lookup_503", "list_missing_page", "list_cursor_loop"])
def test_a_lookup_that_was_not_answered_cannot_tell(
    provider: SandboxProcess, cast: Cast, fault: str
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    provider.fault(fault, on="list")
    looked_up(operation)
    [finding] = Evidence.objects.filter(operation=operation, kind="lookup")
    if fault == "lookup_503":
        assert finding.facts["verdict"] == "cannot_tell"
        assert "503" in finding.facts["because"]
    assert operation.state == states.UNKNOWN


def test_an_account_that_nothing_can_settle_becomes_a_case_at_once(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit", "plain-blind")
    looked_up(operation)
    case = Case.objects.get(operation=operation)
    assert (operation.state, case.reasons, operation.halted) == (
        states.UNKNOWN,
        ["unresolved"],
        True,
    )
    assert "only a person can find out" in case.because


def test_patience_ends_in_a_case_and_looking_goes_on(provider: SandboxProcess, cast: Cast) -> None:
    operation = sent_with(provider, cast, "drop_before_commit", "plain-unbounded")
    Operation.objects.filter(pk=operation.pk).update(
        unknown_since=timezone.now() - timedelta(seconds=16)
    )
    looked_up(operation)
    assert Case.objects.get(operation=operation).reasons == ["unresolved"]
    assert operation.due_at is not None
    provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-unbounded", "payment": "pi_4821", "amount_minor": 4000},
    )
    assert looked_up(operation).state == states.UNKNOWN  # an equal amount is not ours


def test_evidence_that_ends_the_operation_closes_its_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit", "plain-unbounded")
    provider.fault("list_lag", account="plain-unbounded", on="list", seconds=60)
    Operation.objects.filter(pk=operation.pk).update(
        unknown_since=timezone.now() - timedelta(seconds=16)
    )
    looked_up(operation)
    assert Case.objects.get(operation=operation).closed_at is None
    assert looked_up(operation).state == states.SUCCEEDED
    assert Case.objects.get(operation=operation).closed_at is not None
    assert operation.halted is False


@pytest.mark.parametrize("fault", ["wrong_amount", "wrong_currency"])
def test_an_answer_that_is_not_what_we_asked_for_is_no_success_and_keeps_its_reference(
    provider: SandboxProcess, cast: Cast, fault: str
) -> None:
    operation = sent_with(provider, cast, fault)
    assert operation.state == states.UNKNOWN
    answer = Evidence.objects.get(operation=operation, kind="answer")
    assert answer.facts["ref"] == provider.refunds()[0]["id"]


def test_two_refunds_of_one_operation_both_count_and_ask_a_person(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    provider.fault("execute_twice")
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    looked_up(operation)
    assert len(provider.refunds()) == 2
    case = Case.objects.get(operation=operation)
    assert case.reasons == ["duplicate"]
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor, payment.halted) == (8000, 0, True)
    assert ProviderRefund.objects.filter(operation=operation, counts=True).count() == 2


def test_an_ended_lease_is_unknown_and_its_late_sender_decides_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit")
    later = timezone.now() + timedelta(seconds=61)
    assert reconciler.end_leases(later, batch_max=10) == 0  # it answered; nothing to end
    build.order("4822")
    provider.payment("pi_4822")
    second = build.authorized(cast.fay, cast.cleo, order_ref="4822", amount_minor=4100)
    account = registry.account("plain-main")
    claim(
        second.pk,
        worker="test",
        identity=account.identity(),
        contract=account.contract,
        limits=settings.LIMITS,
    )
    assert reconciler.end_leases(timezone.now(), batch_max=10) == 0
    assert reconciler.end_leases(later, batch_max=10) == 1
    second.refresh_from_db()
    assert second.state == states.UNKNOWN
    attempt = Attempt.objects.get(operation=second)
    assert attempt.closed_at is not None
    assert attempt.outcome is None
    assert operation.state == states.UNKNOWN


@pytest.mark.parametrize("fault", [None, "lookup_503"])
def test_a_look_during_a_send_does_not_put_off_the_end_of_its_lease(
    provider: SandboxProcess, cast: Cast, fault: str | None
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    account = registry.account("plain-main")
    claim(
        operation.pk,
        worker="test",
        identity=account.identity(),
        contract=account.contract,
        limits=settings.LIMITS,
    )
    operation.refresh_from_db()
    lease_ends = operation.due_at
    assert lease_ends is not None
    if fault is not None:
        provider.fault(fault, on="list", times=None)
    for _ in range(settings.LIMITS.inconclusive_lookups_max + 1):
        looked_up(operation)
    assert (operation.state, operation.due_at) == (states.SUBMITTING, lease_ends)
    assert reconciler.end_leases(lease_ends + timedelta(seconds=1), batch_max=10) == 1


def test_more_given_back_than_taken_is_shown_and_opens_a_case(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment()
    build.order(captured_minor=10_000)
    operation = build.authorized(cast.fay, cast.ben, amount_minor=6000)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    build.external_refund("4821", 8000)
    payment = Payment.objects.get()
    assert payment.available_minor == -4000
    assert monitors.over_refunded() == 1
    assert monitors.over_refunded() == 0
    case = Case.objects.get()
    assert case.reasons == ["external"]
    assert "Over-refunded by 40.00 USD" in case.because


def test_a_refund_still_in_work_is_pending_until_a_lookup_says_more(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(account="plain-async")
    build.order(account="plain-async")
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    assert dispatch.send(str(operation.pk)) == "accepted"
    assert looked_up(operation).state == states.PENDING
    assert Payment.objects.get().held_minor == 4000
    provider.advance(6)
    assert looked_up(operation).state == states.SUCCEEDED
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor) == (4000, 0)


def test_a_refund_that_fails_at_the_provider_is_failed_and_releases_its_money(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.payment(account="plain-async")
    order = build.order(account="plain-async")
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    dispatch.send(str(operation.pk))
    [refund] = provider.refunds("plain-async")
    provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "failed"})
    assert looked_up(operation).state == states.FAILED
    payment = Payment.objects.get()
    assert (payment.refunded_minor, payment.held_minor) == (0, 0)
    order.refresh_from_db()
    assert [move.cause for move in order.moves.order_by("version")] == [
        "first_seen",
        "reserved",
        "released",
    ]


def test_where_only_a_person_can_find_out_nobody_is_told_that_we_are_checking(
    provider: SandboxProcess, cast: Cast
) -> None:
    blind = sent_with(provider, cast, "drop_after_commit", "plain-blind")
    said = result(blind, timezone.now())["sentence"]
    assert "Only a person can find out" in said
    assert "checking" not in said


def test_a_refund_still_in_work_after_a_day_asks_a_person_and_is_looked_at_on(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.configure("plain-async", settle_seconds=10**6)
    provider.payment(account="plain-async")
    build.order(account="plain-async")
    operation = build.authorized(cast.fay, cast.ben, amount_minor=4000)
    dispatch.send(str(operation.pk))
    looked_up(operation)
    assert not Case.objects.exists()
    Operation.objects.update(entered_at=timezone.now() - timedelta(hours=25))
    assert looked_up(operation).state == states.PENDING
    assert Case.objects.get(operation=operation).reasons == ["overdue_pending"]
    provider.advance(10**6 + 1)
    assert looked_up(operation).state == states.SUCCEEDED
    assert Case.objects.get(operation=operation).closed_at is not None


def test_an_answer_of_another_mode_cannot_tell(provider: SandboxProcess, cast: Cast) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    provider.fault("wrong_mode", on="list")
    looked_up(operation)
    finding = Evidence.objects.get(operation=operation, kind="lookup").facts
    assert finding["verdict"] == "cannot_tell"
    assert "the answer is of mode test" in finding["because"]


@contextmanager
def account_is_gone() -> Iterator[None]:
    """Every reading of its operations fails."""
    settings.SANDBOX = False
    registry.accounts.cache_clear()
    try:
        yield
    finally:
        settings.SANDBOX = True
        registry.accounts.cache_clear()


def test_an_operation_of_a_removed_account_becomes_a_case_after_three_failures(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    with account_is_gone():
        for _ in range(3):
            with pytest.raises(Refusal):
                reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    assert operation.state == states.UNKNOWN
    assert Case.objects.get(operation=operation).reasons == ["poison"]
    assert operation.due_at is not None
    assert operation.due_at > timezone.now() + timedelta(minutes=30)


def test_failures_with_a_success_between_them_are_no_poison(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")

    def fails_twice() -> None:
        with account_is_gone():
            for _ in range(2):
                with pytest.raises(Refusal):
                    reconciler.look_up(operation.pk)

    fails_twice()
    assert looked_up(operation).failure_count == 0
    fails_twice()
    assert not Case.objects.exists()


def test_a_database_that_goes_away_is_nothing_that_an_operation_did(cast: Cast) -> None:
    """Three crashes while one refund was looked up made it a person's work, and halted it."""

    def said(statement: str) -> bool:
        with pytest.raises(DatabaseError) as failed, connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()
        return connections.is_lost(failed.value)

    assert said("SELECT pg_terminate_backend(pg_backend_pid())")
    assert not said("SET statement_timeout = 1; SELECT pg_sleep(5)")
    assert not said("SELECT 1 / 0")
    assert not connections.is_lost(Refusal("gone", "Gone.", what_to_do="Nothing."))
