"""How fast an account is asked: one budget for all workers, and a breaker on its answers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from reconciliation import budget, reconciler, sweep
from reconciliation.models import LookupMinute
from refunds.domain import states
from refunds.models import Operation, ProviderAccount
from refunds.providers import plain_contracts, stripe
from tests.cast import Cast
from tests.flows.finding import looked_up, sent_with
from tests.provider_process import SandboxProcess

RATE = 40


@pytest.mark.parametrize(
    ("asked", "ambiguous", "per_second"),
    [
        (0, 0, 5),
        (19, 19, 5),  # too few to say
        (100, 1, 5),
        (100, 2, 2.5),
        (20, 1, 2.5),
        (100, 5, 2.5),
        (100, 6, 1 / 60),
    ],
)
def test_answers_that_do_not_come_halve_the_rate_and_then_leave_a_trial_a_minute(
    asked: int, ambiguous: int, per_second: float
) -> None:
    at = budget.pace(stripe.CONTRACT, asked, ambiguous, stopped=False)
    assert at.per_second == per_second
    assert at.burst == (1 if per_second < 1 else 10)


def test_a_refused_credential_stops_at_once() -> None:
    assert budget.pace(stripe.CONTRACT, 0, 0, stopped=True).per_second == 1 / 60


@pytest.mark.django_db(transaction=True)
def test_several_workers_together_keep_the_rate_of_one_account() -> None:
    """Four of them ask for two seconds: the burst, and the rate within a twentieth."""
    at, until = budget.Pace(RATE, 5), time.monotonic() + 2

    def hammer(_: int) -> int:
        taken = 0
        while time.monotonic() < until:
            taken += budget.take("stripe-main", at)
        connection.close()
        return taken

    began = time.monotonic()
    with ThreadPoolExecutor(4) as workers:
        taken = sum(workers.map(hammer, range(4)))
    seconds = time.monotonic() - began
    assert taken <= 5 + RATE * seconds * 1.05
    assert taken >= RATE * 2 * 0.95
    assert budget.room("plain-main", at) == 5  # another account has its own


@pytest.mark.django_db(transaction=True)
def test_what_an_account_has_no_room_for_waits_in_the_database(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit")
    slow = plain_contracts.CONTRACTS["plain-main"].with_changes(
        lookups_per_second=1, lookups_burst=1
    )
    at = budget.pace(slow, 0, 0, stopped=False)
    monkeypatch.setattr(budget, "pace_now", lambda *_: at)
    Operation.objects.update(due_at=timezone.now())
    assert list(reconciler.due(timezone.now(), batch_max=10)) == [str(operation.pk)]
    assert budget.take("plain-main", at)
    assert list(reconciler.due(timezone.now(), batch_max=10)) == []
    assert looked_up(operation) == ["later"]
    assert operation.lookup_started == 0
    assert operation.due_at is not None
    assert operation.due_at > timezone.now()


@pytest.mark.django_db(transaction=True)
def test_answers_are_counted_and_a_credential_that_is_refused_to_a_lookup_pauses_the_account(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = sent_with(provider, cast, "drop_before_commit")
    looked_up(operation)
    provider.configure("plain-main", api_key="another")
    looked_up(operation)
    counted = LookupMinute.objects.all()
    assert sum(each.asked_count for each in counted) == 2
    assert sum(each.ambiguous_count for each in counted) == 1
    assert ProviderAccount.objects.get(name="plain-main").pause_kind == "credential"
    assert operation.state == states.UNKNOWN
    assert looked_up(operation, 2)[-1] == "later"  # after a trial


@pytest.mark.django_db(transaction=True)
def test_what_was_rung_for_is_not_rung_for_again_until_its_bell_must_be_lost(
    provider: SandboxProcess, cast: Cast, rung: list[tuple[str, str]]
) -> None:
    operation = sent_with(provider, cast, "drop_after_commit")
    rung.clear()
    now = timezone.now()
    Operation.objects.update(due_at=now)
    assert [sweep.ring_for_due(now + timedelta(seconds=each)) for each in (0, 1, 9)] == [1, 0, 0]
    assert rung == [("reconciliation.tasks.look_up", str(operation.pk))]
    assert sweep.ring_for_due(now + timedelta(seconds=11)) == 1
    assert looked_up(operation) == ["Settle"]
    assert sweep.ring_for_due(now + timedelta(seconds=30)) == 0
