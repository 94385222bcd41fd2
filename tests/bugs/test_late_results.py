"""Public reports of results that came late or were lost on the way in: B087 to B095, B142."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch
from refunds.domain import states
from refunds.models import Approval, Evidence, Operation, Payment
from refunds.queries import results
from tests import build
from tests.bugs.history import let_pass
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

_DAY = 86400


def test_b087_a_pending_answer_is_no_failure_it_holds_the_money_and_is_looked_up(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, "plain-async")
    assert dispatch.send(str(operation.pk)) == "accepted"
    assert state_of(operation) == states.PENDING
    assert operation.pending_reason == "provider_working"
    assert balance_of() == (7900, 0, 5000)
    let_pass(2)
    assert str(operation.pk) in reconciler.due(timezone.now(), batch_max=10)


def test_b091_what_was_accepted_is_told_as_accepted_and_not_as_returned(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, "plain-async")
    provider.configure("plain-async", settle_seconds=2 * _DAY)
    dispatch.send(str(operation.pk))
    readable = results.find(operation.pk)
    assert readable is not None
    told = results.result(readable, timezone.now())
    assert (told["outcome"], told["money_may_have_moved"]) == ("pending", "maybe")
    assert "The provider accepted it at" in told["sentence"]
    assert "is working on it" in told["sentence"]


def test_b093_a_refund_of_which_no_message_ever_comes_is_settled_by_the_schedule(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    operation = authorized(provider, cast, "plain-async")
    provider.configure("plain-async", settle_seconds=2 * _DAY + 3600, notices=False)
    dispatch.send(str(operation.pk))
    for expected in (states.PENDING, states.PENDING, states.SUCCEEDED):
        let_pass(_DAY)
        provider.advance(_DAY)
        run_schedule()
        assert state_of(operation) == expected
    assert balance_of() == (0, 7900, 5000)
    assert len(creates(provider, "plain-async")) == 1


def test_b095_an_answer_is_kept_even_when_recording_what_follows_from_it_fails(
    provider: SandboxProcess, cast: Cast
) -> None:
    provider.configure("plain-main", reasons_accepted=["duplicate"])
    operation = authorized(provider, cast)
    with history_unwritable("event", "refused"), pytest.raises(IntegrityError):
        dispatch.send(str(operation.pk))
    answer = Evidence.objects.get(operation=operation, kind="answer")
    assert (answer.facts["outcome"], answer.facts["code"]) == ("refused", "reason_not_accepted")
    assert state_of(operation) == states.SUBMITTING
    assert operation.halted
    assert balance_of() == (7900, 0, 5000)
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()


@contextmanager
def history_unwritable(table: str, event: str) -> Iterator[None]:
    """While it lasts, the database takes no such row of the history."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TRIGGER out_of_order BEFORE INSERT ON {table} FOR EACH ROW"
            f" WHEN (NEW.event = '{event}') EXECUTE FUNCTION aftersend_refuse('out of order')"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER out_of_order ON {table}")


def test_b142_an_approval_whose_trail_cannot_be_written_is_no_approval(
    cast: Cast, rung: list[tuple[str, str]]
) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    with (
        history_unwritable("event", "approved"),
        pytest.raises(IntegrityError, match="out of order"),
    ):
        approvals.approve(operation.pk, cast.ben, build.shown(operation))
    assert state_of(operation) == states.AWAITING_APPROVAL
    assert not Approval.objects.exists()
    assert rung == []


def test_b142_a_settlement_whose_trail_cannot_be_written_settles_nothing(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = answer_lost(provider, cast)
    for _ in range(3):
        with (
            history_unwritable("event", "found_succeeded"),
            pytest.raises(IntegrityError, match="out of order"),
        ):
            reconciler.look_up(operation.pk)
    assert state_of(operation) == states.UNKNOWN
    assert "found_succeeded" not in events_of(operation)
    assert not operation.provider_refunds.exists()
    assert balance_of() == (7900, 0, 5000)
    # It says so loudly: the third failure is a case. Once the trail can be written, it settles.
    assert open_reasons(operation) == ["poison"]
    reconciler.look_up(operation.pk)
    assert state_of(operation) == states.SUCCEEDED
    assert open_reasons(operation) == []
    assert Operation.objects.get(pk=operation.pk).halted is False
    assert Payment.objects.get().halted is False
