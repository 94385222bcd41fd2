"""The third standing check: our books against what was settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from reconciliation import settlement, verifiers
from reconciliation.models import Alarm, Case, SettlementLine
from reconciliation.settlement_csv import Line
from reconciliation.verifiers.judging import Reported, against_report
from refunds import dispatch
from refunds.domain import states
from refunds.models import Operation, ProviderAccount, ProviderRefund
from tests import build
from tests.bugs.history import let_pass
from tests.cast import Cast
from tests.monitors.stage import forced, guards_aside
from tests.outside.steps import DAY, by_hand, later, tick, turn
from tests.provider_process import SandboxProcess

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
AGREES = Reported(
    ref="rf_1",
    key="refund:4821:request-1",
    state=states.SUCCEEDED,
    booked_minor=7900,
    booked_currency="USD",
    counts=True,
    report="po_1",
    paid=True,
    amount_minor=7900,
    currency="USD",
    covered_until=NOON,
    waits_for_order=False,
    came_back_since=False,
)
NOTHING_BOOKED: dict[str, Any] = {"booked_minor": None, "booked_currency": "", "counts": False}
NO_REPORT: dict[str, Any] = {
    "report": None,
    "paid": False,
    "amount_minor": None,
    "currency": "",
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"state": "failed"}, "is failed, and report po_1 shows rf_1 as paid"),
        ({"state": "awaiting_approval"} | NOTHING_BOOKED, "is awaiting approval, and report po_1"),
        ({"state": "unknown"} | NOTHING_BOOKED, ""),
        ({"state": "", "key": ""} | NOTHING_BOOKED, "and no book of ours has it"),
        ({"state": "", "waits_for_order": True} | NOTHING_BOOKED, ""),
        ({"state": "", "paid": False} | NOTHING_BOOKED, ""),
        ({"counts": False}, "as paid, and we do not count it"),
        ({"counts": False, "came_back_since": True}, ""),
        ({"counts": False, "came_back_since": True, "state": "failed"}, "is failed, and report"),
        ({"paid": False}, "as not paid, and we count it"),
        ({"paid": False, "state": "pending"}, ""),
        ({"paid": False, "counts": False, "state": "returned"}, ""),
        ({"amount_minor": 7800}, "booked with 79.00 USD, and report po_1 has 78.00 USD"),
        ({"currency": "EUR"}, "booked with 79.00 USD, and report po_1 has 79.00 EUR"),
        (NO_REPORT, "complete until 2026-11-29 12:00 UTC, do not have it"),
        (NO_REPORT | {"covered_until": None}, ""),
        (NO_REPORT | {"counts": False}, ""),
        (NO_REPORT | NOTHING_BOOKED, ""),
    ],
)
def test_what_contradicts_a_report(changes: dict[str, Any], says: str) -> None:
    found = against_report(replace(AGREES, **changes))
    assert says in found.replace("\u202f", " ")
    assert bool(found) is bool(says)


@pytest.fixture
def refund(provider: SandboxProcess, cast: Cast) -> ProviderRefund:
    """A refund of ours that succeeded and is in report po_1."""
    provider.payment()
    build.order()
    operation = build.authorized(cast.fay, cast.ben)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    return ProviderRefund.objects.select_related("payment", "operation").get()


def line(row: ProviderRefund, **changes: Any) -> Line:
    values: dict[str, Any] = {
        "provider_account": row.provider_account,
        "provider_refund_ref": row.ref,
        "payment_ref": row.payment.ref,
        "marker": str(row.operation_id or ""),
        "amount_minor": row.amount_minor,
        "currency": row.payment.currency,
        "provider_status": "succeeded",
        "created_at": row.provider_created_at,
        "settled_at": timezone.now(),
        "report_ref": "po_1",
        "settled_minor": 7200,
        "settled_currency": "EUR",
        "fee_minor": 25,
    }
    return Line(**(values | changes))


def _verify(seconds: float = 200) -> list[tuple[str, str]]:
    """What is alarmed about after so long, as (subject, words)."""
    let_pass(seconds)
    verifiers.verify_changes(timezone.now())
    verifiers.verify_everything(timezone.now())
    open_now = Alarm.objects.filter(ended_at=None, name="settlement_disagrees")
    return [(each.subject, each.says.replace("\u202f", " ")) for each in open_now]


def _pause() -> str:
    return ProviderAccount.objects.get(name="plain-main").pause_kind


@pytest.mark.django_db(transaction=True)
def test_what_is_settled_as_it_is_booked_is_quiet_whatever_was_paid_out_for_it(
    refund: ProviderRefund,
) -> None:
    assert settlement.take(line(refund)) == "match"
    settlement.missing("plain-main", NOON - timedelta(days=40), timezone.now())
    assert _verify() == []
    assert _pause() == ""
    refund.refresh_from_db()
    assert (refund.settled_minor, refund.settled_currency, refund.fee_minor) == (7200, "EUR", 25)


# what is changed by hand after the report -> what the check says of it
_BROKEN: dict[str, tuple[Callable[[ProviderRefund], Any], str]] = {
    "denied": (
        lambda row: forced(row.operation, state="failed"),  # type: ignore[arg-type]
        "refund:4821:request-1 is failed, and report po_1 shows",
    ),
    "uncounted": (
        lambda row: ProviderRefund.objects.update(counts=False),
        "as paid, and we do not count it",
    ),
    "amount": (
        lambda row: ProviderRefund.objects.update(amount_minor=7800),
        "is booked with 78.00 USD, and report po_1 has 79.00 USD",
    ),
    "forgotten": (lambda row: ProviderRefund.objects.all().delete(), "no book of ours has it"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", _BROKEN)
def test_a_settled_refund_that_our_books_deny_stops_the_account_and_is_not_repaired(
    refund: ProviderRefund, what: str
) -> None:
    settlement.take(line(refund))
    change, says = _BROKEN[what]
    with guards_aside():
        change(refund)
    before = list(ProviderRefund.objects.values_list("counts", "amount_minor"))
    [(subject, said)] = _verify()
    assert subject == f"refund {refund.ref} at plain-main"
    assert says in said
    assert _pause() == "verifier"
    assert list(ProviderRefund.objects.values_list("counts", "amount_minor")) == before
    assert Case.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_refund_booked_into_a_time_that_complete_reports_cover_without_it_is_found(
    provider: SandboxProcess, refund: ProviderRefund
) -> None:
    settlement.take(line(refund))
    settlement.missing("plain-main", NOON - timedelta(days=40), timezone.now() + timedelta(hours=1))
    ref = by_hand(provider)
    tick()
    # What people knew was before all this: nothing that is said here is known to anybody.
    Case.objects.update(closed_at=timezone.now() - timedelta(days=9), closed_because="Known.")
    [(subject, said)] = _verify()
    assert (subject, _pause()) == (f"refund {ref} at plain-main", "verifier")
    assert "do not have it" in said
    # Its line comes with the next report: the alarm ends, and people resume the account.
    settlement.take(line(ProviderRefund.objects.get(ref=ref), report_ref="po_2"))
    let_pass(200)
    for minutes in (0, 5):
        verifiers.verify_changes(timezone.now() + timedelta(minutes=minutes))
    assert not Alarm.objects.filter(ended_at=None, name="settlement_disagrees").exists()
    assert _pause() == "verifier"


@pytest.mark.django_db(transaction=True)
def test_what_people_know_already_stops_nothing(refund: ProviderRefund) -> None:
    assert settlement.take(line(refund, amount_minor=7000)) == "different"
    assert Case.objects.get().reasons == ["mismatch"]
    assert _verify() == []
    Case.objects.update(closed_at=timezone.now(), closed_because="The report was wrong.")
    assert _verify() == []
    assert SettlementLine.objects.get().verdict == "different"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("late", [False, True], ids=["in order", "the older one last"])
def test_the_newest_report_speaks_where_a_refund_came_back_later(
    refund: ProviderRefund, *, late: bool
) -> None:
    older = line(refund, settled_at=timezone.now() - timedelta(days=2))
    newer = line(refund, report_ref="po_2", provider_status="failed")
    taken = [settlement.take(each) for each in ([newer, older] if late else [older, newer])]
    assert sorted(taken) == ["different", "match"]
    assert refund.operation is not None
    Case.objects.update(closed_at=timezone.now(), closed_because="Looked at.")
    assert _verify() == []
    with guards_aside():
        SettlementLine.objects.update(imported_at=timezone.now() - timedelta(seconds=150))
    [(_, said)] = _verify(0)
    assert "report po_2" in said
    assert "as not paid, and we count it" in said
    assert Operation.objects.get().state == states.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_what_came_back_after_it_was_settled_stops_nothing_until_a_report_says_otherwise(
    provider: SandboxProcess, refund: ProviderRefund
) -> None:
    by_hand(provider)
    tick()
    rows = list(ProviderRefund.objects.select_related("payment").order_by("pk"))
    assert [settlement.take(line(each)) for each in rows] == ["match", "match"]
    for each in rows:
        turn(provider, each.ref, "failed")
    later(provider, DAY + 1)
    tick()
    assert not ProviderRefund.objects.filter(counts=True).exists()
    # What people knew was before all this.
    Case.objects.update(closed_at=timezone.now() - timedelta(days=9), closed_because="Known.")
    assert _verify() == []
    assert _pause() == ""
    for each in rows:
        settlement.take(line(each, report_ref="po_2"))
    Case.objects.update(closed_at=timezone.now() - timedelta(days=9), closed_because="Known.")
    assert {subject for subject, _ in _verify()} == {
        f"refund {each.ref} at plain-main" for each in rows
    }
