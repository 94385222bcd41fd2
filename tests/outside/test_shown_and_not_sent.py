"""A refund of ours shows up that no row permits: after lost rows, or by a colleague's hand.

Whatever people say of it then, it is not sent: one refund for each approval (money rules 2 and 7).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from reconciliation import outside
from reconciliation.cases import open_case
from reconciliation.choices import HAPPENED, NOT_HAPPENED
from reconciliation.models import Case
from refunds import dispatch
from refunds.domain import states
from refunds.domain.errors import Refusal
from refunds.domain.outcome import RefundRecord
from refunds.ledger import lock
from refunds.models import Operation
from refunds.providers.account_list import ListedRefund
from tests.bugs.steps import authorized, balance_of, open_reasons, state_of
from tests.cast import Cast
from tests.ledger.rulings import attached, ruled, signed, told
from tests.outside.steps import history, look_up_due, past, tick
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
HOOKS = "plain-hooks"


def case_of(operation: Operation) -> Case:
    return Case.objects.get(operation=operation, closed_at=None)


def reported(tmp_path: Path, provider: SandboxProcess, account: str) -> None:
    """People bring the provider's own export."""
    file = tmp_path / "report.csv"
    with file.open("w", newline="") as written:
        report = csv.writer(written)
        report.writerow(
            ["provider_account", "provider_refund_ref", "payment_ref", "marker", "amount_minor"]
            + ["currency", "provider_status", "created_at", "settled_at", "report_ref"]
        )
        for each in provider.refunds(account):
            report.writerow(
                [account, each["id"], "pi_4821", each["aftersend_operation"], each["amount_minor"]]
                + ["USD", each["status"], each["created_at"], "", "rep-1"]
            )
    call_command("import_settlement", str(file))


def sent(operation: Operation) -> str:
    """Whatever the queue would do with it now."""
    Operation.objects.filter(pk=operation.pk).update(due_at=timezone.now())
    return dispatch.send(str(operation.pk))


def test_a_report_of_what_was_never_sent_and_cannot_be_asked_about_is_a_case_for_two_people(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    operation = authorized(provider, cast, HOOKS, amount_minor=3000)
    history(provider, past("rf_lost", marker=str(operation.pk), account=HOOKS))
    reported(tmp_path, provider, HOOKS)
    look_up_due()
    assert (state_of(operation), open_reasons(operation)) == (states.UNKNOWN, ["contradiction"])
    assert balance_of() == (3000, 0, 9900)
    assert sent(operation) != "confirmed"

    case = case_of(operation)
    attached(case, cast.omar)
    with pytest.raises(Refusal, match="rf_lost is this refund"):
        ruled(case, cast.omar, NOT_HAPPENED)
    signed(ruled(case, cast.omar, HAPPENED, testimony=told("rf_lost", 3000)), cast.ines)
    assert state_of(operation) == states.SUCCEEDED
    assert balance_of() == (0, 3000, 9900)
    assert [each["id"] for each in provider.refunds(HOOKS)] == ["rf_lost"]


def test_a_report_that_it_came_to_nothing_leaves_it_to_people(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, HOOKS, amount_minor=3000)
    record = RefundRecord(
        ref="rf_lost",
        payment_ref="pi_4821",
        amount_minor=3000,
        currency="USD",
        provider_status="failed",
        marker=str(operation.pk),
        created_at=timezone.now(),
    )
    outside.learn(HOOKS, ListedRefund(record=record, payment_refs=("pi_4821",)))
    look_up_due()
    assert (state_of(operation), open_reasons(operation)) == (states.AUTHORIZED, ["contradiction"])
    assert sent(operation) != "confirmed"


@pytest.mark.parametrize("answer", [HAPPENED, "explained", "accept_figure"])
def test_ours_of_another_amount_is_unknown_and_never_sent_after_any_answer(
    provider: SandboxProcess, cast: Cast, answer: str
) -> None:
    operation = authorized(provider, cast)
    history(provider, past("rf_lost", marker=str(operation.pk)))
    tick()
    look_up_due()
    assert state_of(operation) == states.UNKNOWN
    assert set(open_reasons(operation)) == {"contradiction", "mismatch"}
    case = case_of(operation)
    said: dict[str, Any] = {"accept_figure": {"ref": "rf_lost", "amount_minor": 3000}}.get(
        answer, {}
    )
    if said:
        signed(ruled(case, cast.omar, answer, **said), cast.ines)
        assert state_of(operation) == states.MISMATCHED
    else:
        with pytest.raises(Refusal, match="Missing"):
            ruled(case, cast.omar, answer, ref="rf_lost", ticket="T-1")
    assert sent(operation) != "confirmed"
    assert [each["id"] for each in provider.refunds()] == ["rf_lost"]


def test_two_of_ours_are_unknown_at_once_and_both_are_found(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast, amount_minor=3000)
    marker = str(operation.pk)
    history(provider, past("rf_1", marker=marker), past("rf_2", marker=marker))
    tick()
    look_up_due()
    assert "duplicate" in open_reasons(operation)
    assert state_of(operation) == states.SUCCEEDED
    assert balance_of()[1] == 6000
    assert sent(operation) != "confirmed"
    assert len(provider.refunds()) == 2


def test_what_a_verified_notice_told_of_is_not_explained_away_without_a_statement(
    provider: SandboxProcess, cast: Cast
) -> None:
    operation = authorized(provider, cast)
    with transaction.atomic():
        open_case(lock(operation.pk), "contradiction", "The provider tells of rf_7.")
    case = case_of(operation)
    with pytest.raises(Refusal, match="a statement of the provider that none of it was paid"):
        ruled(case, cast.omar, "explained", ticket="T-1")
    assert sent(operation) != "confirmed"
    attached(case, cast.omar)
    ruled(case, cast.omar, "explained", ticket="T-1")
    assert sent(operation) == "confirmed"
    assert len(provider.refunds()) == 1
