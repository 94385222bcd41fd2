"""Scenario orders, one by one, against the real sandbox: what each says it does, it does.

Nobody plans a fault here: an agent proposes, and the demo's own programs do the rest.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import Case
from refunds import dispatch, intake
from refunds.approvals import approve
from refunds.domain import states
from refunds.models import Event, Operation, PolicyCheck, ProviderAccount
from refunds.queries.results import result
from review.demo import people, scenarios
from review.demo.approver import Approvers, change_the_stale_order
from review.demo.shop import Control, sandbox_address
from tests import build
from tests.cast import Cast
from tests.provider_process import CONTROL_TOKEN, SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approvers(provider: SandboxProcess, cast: Cast) -> Approvers:
    scenarios.ensure_orders(Control(sandbox_address(), CONTROL_TOKEN))
    return Approvers(people.ensure_approvers())


def asked(cast: Cast, name: str, amount_minor: int = 1900, **more: Any) -> Operation:
    return build.proposed(cast.echo, name, amount_minor, **more)


def later(seconds: float) -> Any:
    return timezone.now() + timedelta(seconds=seconds)


def decided(approvers: Approvers, operation: Operation) -> Operation:
    """The approvers have looked when a second has passed."""
    assert approvers.decide(later(1.5)) == 1
    operation.refresh_from_db()
    return operation


def sent(operation: Operation) -> Operation:
    dispatch.send(str(operation.pk))
    operation.refresh_from_db()
    return operation


def looked(operation: Operation) -> Operation:
    reconciler.look_up(operation.pk)
    operation.refresh_from_db()
    return operation


def paid_minor(provider: SandboxProcess, operation: Operation) -> list[int]:
    return [
        refund["amount_minor"]
        for refund in provider.refunds()
        if refund["aftersend_operation"] == operation.marker
    ]


@pytest.mark.parametrize("name", ["demo-answer-lost", "demo-500-after-commit"])
def test_an_answer_that_is_lost_or_an_error_is_unknown_until_a_lookup_finds_the_refund(
    provider: SandboxProcess, cast: Cast, approvers: Approvers, name: str
) -> None:
    for amount_minor in (1900, 2100):  # as often as somebody asks
        operation = sent(decided(approvers, asked(cast, name, amount_minor)))
        assert operation.state == states.UNKNOWN
        assert looked(operation).state == states.SUCCEEDED
        assert paid_minor(provider, operation) == [amount_minor]


def test_a_lagging_lookup_proves_nothing_and_a_later_one_finds_the_refund(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = sent(decided(approvers, asked(cast, "demo-lookup-lags")))
    assert looked(operation).state == states.UNKNOWN
    provider.advance(3)
    assert looked(operation).state == states.SUCCEEDED
    assert paid_minor(provider, operation) == [1900]


def test_without_a_lookup_the_refund_stays_unknown_and_waits_for_a_person(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = looked(sent(decided(approvers, asked(cast, "demo-no-lookup"))))
    assert (operation.state, operation.halted) == (states.UNKNOWN, True)
    assert Case.objects.get(operation=operation, closed_at=None).reasons == ["unresolved"]
    assert paid_minor(provider, operation) == [1900]


def test_what_was_turned_away_passes_the_second_time_and_pauses_nobody(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    for amount_minor in (1900, 2100, 2300, 2500):
        operation = sent(decided(approvers, asked(cast, "demo-turned-away", amount_minor)))
        assert (operation.state, operation.attempt_count) == (states.AUTHORIZED, 1)
        assert paid_minor(provider, operation) == []
        assert sent(operation).state == states.SUCCEEDED
        assert paid_minor(provider, operation) == [amount_minor]
    assert not ProviderAccount.objects.exclude(pause_kind="").exists()


def test_a_changed_order_ends_the_approval_and_a_persons_second_one_goes_through(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = decided(approvers, asked(cast, "demo-stale"))
    assert operation.state == states.AUTHORIZED
    assert change_the_stale_order() == 1
    assert change_the_stale_order() == 0
    assert sent(operation).state == states.AWAITING_APPROVAL
    assert operation.stale_cause == "order_changed"
    assert approvers.decide(later(60)) == 0
    approve(operation.pk, cast.cleo, build.shown(operation, tick=True))
    assert change_the_stale_order() == 0
    assert sent(operation).state == states.SUCCEEDED
    assert paid_minor(provider, operation) == [1900]


def test_policy_refuses_the_old_payment_and_nobody_is_asked(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = asked(cast, "demo-denied")
    assert operation.state == states.DENIED
    failed = PolicyCheck.objects.filter(operation=operation, passed=False)
    assert [check.name for check in failed] == ["refund_age"]
    assert approvers.decide(later(60)) == 0
    assert provider.refunds() == []


def test_the_lead_of_the_demo_rejects_with_a_reason(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = decided(approvers, asked(cast, "demo-rejected"))
    assert operation.state == states.REJECTED
    rejected = Event.objects.get(operation=operation, event="rejected")
    assert rejected.actor == "person:demo-approver"
    assert rejected.detail["reason"] == scenarios.REJECTION
    assert provider.refunds() == []


def test_an_approval_comes_after_five_seconds_and_not_before(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = asked(cast, "demo-approved-after-5s")
    assert approvers.decide(operation.created_at + timedelta(seconds=4.9)) == 0
    assert approvers.decide(operation.created_at + timedelta(seconds=5)) == 1
    assert sent(operation).state == states.SUCCEEDED
    assert paid_minor(provider, operation) == [1900]


def test_the_agent_is_told_to_ask_the_customer_who_answers_after_a_minute(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    operation = sent(decided(approvers, asked(cast, "demo-needs-customer")))
    assert (operation.state, operation.pending_reason) == (states.PENDING, "needs_customer")
    assert result(operation, timezone.now())["next_action"] == "ask_customer"
    provider.advance(60)
    assert looked(operation).state == states.SUCCEEDED
    assert paid_minor(provider, operation) == [1900]


@pytest.mark.parametrize(("amount_minor", "tier"), [(15000, 2), (150_000, 3)])
def test_higher_tiers_are_approved_too_by_two_people_of_the_demo(
    provider: SandboxProcess, cast: Cast, approvers: Approvers, amount_minor: int, tier: int
) -> None:
    operation = build.proposed(cast.fay, "demo-answer-lost", amount_minor)
    assert operation.tier == tier
    assert decided(approvers, operation).state == states.AUTHORIZED
    assert [each.approver.username for each in operation.approvals.order_by("pk")] == [
        "demo-approver",
        "demo-approver-two",
    ]


def test_the_same_amount_again_is_the_same_refund_unless_it_is_said_to_be_separate(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    name = "demo-approved-after-5s"
    first = asked(cast, name)
    approvers.decide(later(6))
    sent(first)
    again = intake.propose(build.request(name, 1900), intake.Caller(agent=cast.echo))
    assert (again.outcome, again.operation.pk) == ("already_done", first.pk)
    separate = asked(cast, name, separate_from=first.pk)
    approvers.decide(later(6))
    assert sent(separate).state == states.SUCCEEDED
    assert len(provider.refunds()) == 2


def test_orders_of_other_names_are_left_to_people(
    provider: SandboxProcess, cast: Cast, approvers: Approvers
) -> None:
    provider.payment("pi_demo-answer-lost-not")
    build.order("demo-answer-lost-not")
    operation = build.proposed(cast.echo, "demo-answer-lost-not")
    assert approvers.decide(later(60)) == 0
    operation.refresh_from_db()
    assert operation.state == states.AWAITING_APPROVAL


def test_an_order_of_that_name_on_a_real_account_is_left_to_people(
    provider: SandboxProcess, cast: Cast, approvers: Approvers, settings: Any
) -> None:
    operation = asked(cast, "demo-answer-lost")
    settings.SANDBOX_URL = "http://127.0.0.1:1"  # the account's address is no longer the sandbox's
    assert approvers.decide(later(60)) == 0
    operation.refresh_from_db()
    assert operation.state == states.AWAITING_APPROVAL


def test_nobody_signs_in_as_an_automatic_approver(approvers: Approvers, client: Any) -> None:
    for person in people.ensure_approvers():
        assert not person.has_usable_password()
        assert not client.login(username=person.username, password="")


def test_the_automatic_approvers_do_not_begin_in_production(settings: Any, cast: Cast) -> None:
    settings.PRODUCTION = True
    with pytest.raises(ImproperlyConfigured, match="exist in the demo only"):
        Approvers(people.ensure_approvers())


@pytest.mark.parametrize("changes", [{"env": "production"}, {"env": "test"}, {"sandbox_token": ""}])
def test_the_program_behind_the_demo_refuses_to_run_anywhere_else(
    settings: Any, cast: Cast, changes: dict[str, str]
) -> None:
    in_demo = {"env": "demo", "sandbox_token": CONTROL_TOKEN}
    settings.ENV = settings.ENV.model_copy(update=in_demo | changes)
    with pytest.raises(CommandError, match="nothing was done"):
        call_command("demo_life")


def test_the_documentation_has_a_row_for_every_scenario() -> None:
    table = scenarios.markdown_table()
    assert [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")] == list(
        scenarios.BY_ORDER
    )
    assert "separate_from" in table
