"""Public reports of what happened at the provider without anybody here: B068, B085."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.models import ProviderRefund
from tests import build
from tests.bugs.history import let_pass
from tests.bugs.steps import authorized, balance_of, events_of, open_reasons, state_of
from tests.cast import Cast
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_b068_a_part_refunded_at_the_provider_counts_and_goes_into_review(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    provider.payment(captured_minor=1000)
    build.order(captured_minor=1000)
    fields = {"account": "plain-main", "payment": "pi_4821", "amount_minor": 200}
    made = provider.control("POST", "/external_refund", fields)
    run_schedule()
    refund = ProviderRefund.objects.get()
    assert (refund.ref, refund.operation_id, refund.counts) == (made["id"], None, True)
    assert balance_of() == (0, 200, 800)
    assert Case.objects.get(closed_at=None).reasons == ["external"]


def test_b085_a_refund_cancelled_days_after_its_success_is_returned_with_a_case(
    provider: SandboxProcess, cast: Cast, run_schedule: Callable[[], None]
) -> None:
    operation = authorized(provider, cast)
    dispatch.send(str(operation.pk))
    run_schedule()
    assert state_of(operation) == states.SUCCEEDED
    [refund] = provider.refunds()
    provider.control("POST", f"/refunds/{refund['id']}/status", {"to": "canceled"})
    let_pass(3 * 86_400)
    run_schedule()
    assert (state_of(operation), events_of(operation)[-1]) == (states.RETURNED, "taken_back")
    assert balance_of() == (0, 0, 12900)
    assert open_reasons(operation) == ["remedy"]
