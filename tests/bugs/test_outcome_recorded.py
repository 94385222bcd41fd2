"""Public reports of outcomes that were recorded wrongly: B001 to B013."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone

from reconciliation import probes, reconciler, sweep
from refunds import approvals, dispatch, intake
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.ledger import RECONCILER, lock, release, transition
from refunds.models import Attempt, Evidence, Operation, ProviderAccount
from tests import build
from tests.bugs.conftest import Accounts, Change
from tests.bugs.history import let_pass
from tests.bugs.programs import Program
from tests.bugs.steps import (
    answer_lost,
    authorized,
    balance_of,
    creates,
    events_of,
    open_reasons,
    state_of,
)
from tests.cast import Cast, assemble
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)

_DAY_AND_AN_HOUR = 25 * 3600


@pytest.fixture
def falsely_failed(provider: SandboxProcess, cast: Cast) -> Operation:
    """An old wrong row: failed, without a provider id, while the provider did pay."""
    operation = answer_lost(provider, cast)
    with transaction.atomic():
        locked = lock(operation.pk)
        release(locked, by=RECONCILER)
        transition(locked.operation, "found_failed", by=RECONCILER)
    assert state_of(operation) == states.FAILED
    assert balance_of() == (0, 0, 12900)
    assert not operation.provider_refunds.exists()
    return operation


def test_b001_a_refund_pending_for_a_day_is_failed_by_no_scheduled_job(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    operation = authorized(provider, cast, "plain-async")
    provider.configure("plain-async", settle_seconds=100 * 3600)
    assert dispatch.send(str(operation.pk)) == "accepted"
    let_pass(_DAY_AND_AN_HOUR)
    provider.advance(_DAY_AND_AN_HOUR)
    run_schedule()
    assert state_of(operation) == states.PENDING
    assert balance_of() == (7900, 0, 5000)
    assert Evidence.objects.filter(operation=operation, kind="lookup").exists()
    assert open_reasons(operation) == ["overdue_pending"]
    assert len(creates(provider, "plain-async")) == 1


def test_b001_a_refund_unknown_for_a_day_stays_unknown_and_gets_a_case(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    operation = answer_lost(provider, cast)
    provider.fault("lookup_503", on="list", times=None)
    let_pass(_DAY_AND_AN_HOUR)
    run_schedule()
    assert state_of(operation) == states.UNKNOWN
    assert open_reasons(operation) == ["unresolved"]
    assert balance_of() == (7900, 0, 5000)
    assert len(creates(provider)) == 1


def test_b003_a_refund_found_after_a_false_failure_is_a_contradiction_and_counts(
    provider: SandboxProcess, falsely_failed: Operation
) -> None:
    operation = falsely_failed
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    assert events_of(operation)[-2:] == ["found_failed", "contradicted"]
    assert open_reasons(operation) == ["contradiction"]
    assert operation.halted
    # Both records: what we said stays in the history, what they show is linked.
    [refund] = provider.refunds("plain-main")
    assert operation.provider_refunds.get().ref == refund["id"]
    assert balance_of() == (7900, 0, 5000)


def test_b005_without_a_credential_it_is_known_not_sent_and_sent_later_with_the_same_key(
    provider: SandboxProcess, db: None, accounts: Accounts
) -> None:
    shop = {"adapter": "plain", "base_url": provider.plain_base(), "contract": "plain-main"}
    accounts({"shop-eu": shop}, key=None)
    cast = assemble()
    provider.payment()
    build.order(account="shop-eu")
    operation = build.authorized(cast.echo, cast.ben)
    assert dispatch.send(str(operation.pk)) == "waiting"
    assert state_of(operation) == states.AUTHORIZED
    assert not Attempt.objects.exists()
    assert provider.calls() == []
    account = ProviderAccount.objects.get(name="shop-eu")
    assert account.pause_reason == "No credential is set for shop-eu. Nothing was sent."

    accounts({"shop-eu": shop}, key="sandbox-key-plain-main")
    assert probes.probe_accounts(timezone.now()) == ["shop-eu"]
    assert dispatch.ready(10) == [str(operation.pk)]
    assert dispatch.send(str(operation.pk)) == "confirmed"
    [refund] = provider.refunds("plain-main")
    assert refund["key"] == operation.provider_key


def test_b007_an_id_learnt_after_a_lost_answer_is_stored_with_how_it_was_learnt(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    assert not operation.provider_refunds.exists()
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds("plain-main")
    assert operation.provider_refunds.get().ref == refund["id"]
    moved = operation.events.get(event="found_succeeded")
    learnt = Evidence.objects.get(pk=moved.evidence_id or 0)
    assert (learnt.kind, learnt.facts["method"]) == ("lookup", "list of the payment's refunds")
    [candidate] = learnt.facts["candidates"]
    assert (candidate["ref"], candidate["marker"]) == (refund["id"], operation.marker)


def test_b009_an_answer_after_our_limit_leaves_unknown_until_a_lookup_finds_one_refund(
    provider: SandboxProcess, cast: Cast, limits: Change
) -> None:
    limits(call_total_seconds=0.3)
    operation = authorized(provider, cast)
    provider.fault("delay", seconds=0.8)
    assert dispatch.send(str(operation.pk)) == "unanswered"
    assert state_of(operation) == states.UNKNOWN
    limits(call_total_seconds=3)
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds("plain-main")
    assert refund["executions"] == 1
    assert balance_of() == (0, 7900, 5000)


@pytest.mark.parametrize("first", ["answer", "timeout"])
def test_b011_a_success_and_a_timeout_end_in_success_in_both_orders(
    provider: SandboxProcess, cast: Cast, program: Program, first: str
) -> None:
    operation = authorized(provider, cast)
    provider.fault("hold")
    program.tell("send", operation=str(operation.pk))
    provider.wait_for_hold()
    assert state_of(operation) == states.SUBMITTING
    let_pass(61)
    if first == "answer":
        provider.release()
        assert program.hear() == {"result": "confirmed"}
        assert sweep.end_leases(timezone.now()) == 0
    else:
        assert sweep.end_leases(timezone.now()) == 1
        assert state_of(operation) == states.UNKNOWN
        provider.release()
        assert program.hear() == {"result": "late"}
        assert str(operation.pk) in list(reconciler.due(timezone.now(), batch_max=10))
        reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    assert balance_of() == (0, 7900, 5000)
    assert Evidence.objects.get(kind="answer").facts["outcome"] == "confirmed"
    assert len(provider.refunds("plain-main")) == 1


def test_b013_a_failed_row_without_a_provider_id_is_never_sent_again(
    provider: SandboxProcess, cast: Cast, falsely_failed: Operation
) -> None:
    operation = falsely_failed
    assert dispatch.send(str(operation.pk)) == "gone"
    assert dispatch.ready(10) == []
    again = intake.propose(build.request(), intake.Caller(agent=cast.foxtrot))
    assert (again.outcome, again.operation.pk) == ("already_done", operation.pk)
    assert Operation.objects.count() == 1
    assert len(creates(provider)) == 1


def test_b013_a_second_refund_after_such_a_row_needs_a_tick_and_ends_with_the_lookup(
    provider: SandboxProcess, cast: Cast, falsely_failed: Operation
) -> None:
    second = build.proposed(cast.echo, separate_from=falsely_failed.pk)
    assert second.possible_repeat
    with pytest.raises(Refusal) as unticked:
        approvals.approve(second.pk, cast.ben, build.shown(second))
    assert unticked.value.code == "proof_missing"
    reconciler.look_up(falsely_failed.pk)
    with pytest.raises(Refusal) as halted:
        approvals.approve(second.pk, cast.ben, build.shown(second, tick=True))
    assert halted.value.code == "stale_page"
    assert "halted" in halted.value.detail
    assert len(provider.refunds("plain-main")) == 1
