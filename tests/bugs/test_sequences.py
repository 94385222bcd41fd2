"""Sequences that join several public reports: one refund at most, an honest state, nothing lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connections
from django.utils import timezone

from reconciliation import reconciler, resolutions
from reconciliation.models import Notice
from refunds import approvals, dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.models import Approval, Payment
from refunds.providers import registry
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
from tests.ledger.rulings import attached, quiet_is_over, ruled, unknown_with_case
from tests.notices.work import Rung, told_of, work
from tests.outside.steps import later
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def _worker_restarts(rung: Rung) -> None:
    """What a process knew is gone: connections, caches, and the bells that nobody heard."""
    connections.close_all()
    cache.clear()
    registry.accounts.cache_clear()
    rung.clear()


def test_sequence_1_a_notice_before_the_first_lookup_which_lags_and_two_more_with_restarts_between(
    provider: SandboxProcess, cast: Cast, rung: Rung
) -> None:
    operation = answer_lost(provider, cast, "plain-lagged")
    provider.configure("plain-lagged", lookup_lag_seconds=60)
    rung.clear()
    assert told_of(provider, account="plain-lagged").status == 200
    work(rung)
    assert state_of(operation) == states.UNKNOWN  # the list shows nothing yet, and proves nothing
    for _ in range(2):
        _worker_restarts(rung)
        assert told_of(provider, account="plain-lagged").status == 200
        work(rung)
        assert state_of(operation) == states.UNKNOWN
    _worker_restarts(rung)
    later(provider, 61)
    reconciler.look_up(operation.pk)
    assert (state_of(operation), balance_of()) == (states.SUCCEEDED, (0, 7900, 5000))
    [refund] = provider.refunds("plain-lagged")
    assert operation.provider_refunds.get().ref == refund["id"]
    assert len(creates(provider, "plain-lagged")) == 1
    assert Notice.objects.count() == 1


def test_sequence_2_only_the_second_approval_is_spent_however_late_and_by_whatever_clock(
    provider: SandboxProcess, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = authorized(provider, cast)
    first = Approval.objects.get()
    build.external_refund("4821", 1000)  # the order is another one than the approver saw
    let_pass(86_401)  # the dispatcher comes a day late, with a clock that is six minutes slow
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(minutes=6))
    assert dispatch.send(str(operation.pk)) == "lapsed"
    assert state_of(operation) == states.AWAITING_APPROVAL
    assert creates(provider) == []
    monkeypatch.setattr(timezone, "now", real)
    approvals.approve(operation.pk, cast.cleo, build.shown(operation, tick=True))
    assert dispatch.send(str(operation.pk)) == "confirmed"
    assert dispatch.send(str(operation.pk)) == "gone"
    operation.refresh_from_db()
    spent = Approval.objects.get(operation=operation, round=operation.round)
    assert (first.round, spent.round, spent.approver) == (1, 2, cast.cleo)
    assert events_of(operation).count("submission_started") == 1
    assert len(provider.refunds()) == len(creates(provider)) == 1


def test_sequence_3_of_two_honest_equal_refunds_the_second_is_blocked_and_the_list_shows_one(
    provider: SandboxProcess, cast: Cast
) -> None:
    first = authorized(provider, cast, amount_minor=500, captured_minor=1000)
    assert dispatch.send(str(first.pk)) == "confirmed"
    second = build.proposed(cast.echo, amount_minor=500, separate_from=first.pk)
    approvals.approve(second.pk, cast.ben, build.shown(second, tick=True))
    provider.fault("drop_before_commit")
    assert dispatch.send(str(second.pk)) == "unanswered"
    provider.fault("duplicate_429", times=None)
    reconciler.look_up(second.pk)
    assert state_of(second) == states.UNKNOWN  # the refund that is shown is the first one's
    later(provider, 60)
    reconciler.look_up(second.pk)
    assert state_of(second) == states.AUTHORIZED  # proved: nothing of it happened
    assert dispatch.send(str(second.pk)) == "unanswered"  # "a duplicate" is no refund either
    reconciler.look_up(second.pk)
    assert state_of(second) == states.UNKNOWN
    assert state_of(first) == states.SUCCEEDED
    [only] = provider.refunds()
    assert first.provider_refunds.get().ref == only["id"]
    assert not second.provider_refunds.exists()
    assert balance_of() == (500, 500, 0)
    assert {each["key"] for each in creates(provider)} == {first.provider_key, second.provider_key}


def test_sequence_4_not_sent_on_thin_evidence_is_declined_and_a_later_lookup_finds_it(
    provider: SandboxProcess, cast: Cast
) -> None:
    """Longer unknown than the provider keeps keys; its list lags far beyond what it promises."""
    case = unknown_with_case(provider, cast, account="plain-lagged", fault="drop_after_commit")
    assert case.operation is not None
    provider.configure("plain-lagged", lookup_lag_seconds=3600)
    provider.advance(700)
    with pytest.raises(Refusal, match="begun after"):
        ruled(case, cast.omar, "not_happened")
    quiet_is_over(case.operation)
    attached(case, cast.omar)
    first = ruled(case, cast.omar, "not_happened")
    why = "The statement says nothing about this payment at all."
    resolutions.decline(first.pk, cast.ines, reason=why)
    assert state_of(case.operation) == states.UNKNOWN
    provider.advance(3600)
    reconciler.look_up(case.operation.pk)
    assert state_of(case.operation) == states.SUCCEEDED
    [refund] = provider.refunds("plain-lagged")
    assert case.operation.provider_refunds.get().ref == refund["id"]
    assert Payment.objects.get().refunded_minor == 4000
    assert open_reasons(case.operation) == []
    assert "found_succeeded" in events_of(case.operation)
