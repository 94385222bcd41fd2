"""A settlement report beside the ledger: what is missing, extra or different becomes a case."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import Case, SettlementCover, SettlementLine
from refunds import dispatch
from refunds.models import Operation, ProviderRefund
from tests import build
from tests.cast import Cast
from tests.ledger.rows import everything
from tests.outside.steps import turn
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
HEADER = (
    "provider_account,provider_refund_ref,payment_ref,marker,amount_minor,currency,"
    "provider_status,created_at,settled_at,report_ref"
)
STRIPE_HEADER = (
    "automatic_payout_id,balance_transaction_id,created_utc,currency,gross,fee,net,"
    "reporting_category,source_id,customer_facing_amount,customer_facing_currency,charge_id,"
    "payment_intent_id,refund_metadata[aftersend_operation]"
)


def confirmed(
    provider: SandboxProcess, cast: Cast, ref: str, *, account: str = "plain-main"
) -> ProviderRefund:
    """A refund of 30.00 that succeeded, as it is booked."""
    provider.payment(f"pi_{ref}", account=account)
    build.order(ref, account=account)
    operation = build.authorized(cast.omar, cast.ben, order_ref=ref, amount_minor=3000)
    assert dispatch.send(str(operation.pk)) == "confirmed"
    return ProviderRefund.objects.select_related("payment").get(operation=operation)


def line(row: ProviderRefund, **other: object) -> str:
    cells: dict[str, object] = {
        "account": row.provider_account,
        "ref": row.ref,
        "payment": row.payment.ref,
        "marker": row.operation_id or "",
        "amount": row.amount_minor,
        "currency": row.payment.currency,
        "status": "succeeded",
        "created": (row.provider_created_at or timezone.now()).isoformat(),
        "settled": timezone.now().isoformat(),
        "report": "rep-1",
    }
    return ",".join(str(each) for each in (cells | other).values())


def run(
    tmp_path: Path, *lines: str, header: str = HEADER, more: tuple[str, ...] = ()
) -> tuple[int, str]:
    """(exit code, what it printed)."""
    file = tmp_path / "report.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    out = StringIO()
    try:
        call_command("import_settlement", str(file), *more, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def reasons() -> dict[str, list[str]]:
    """Open cases by order."""
    found = Case.objects.filter(closed_at=None).select_related("payment__order")
    return {case.payment.order.ref: case.reasons for case in found if case.payment}


def test_what_agrees_is_recorded_with_what_was_settled_and_asks_nobody(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "1000")
    header = f"{HEADER},settled_minor,settled_currency,fee_minor"
    assert run(tmp_path, line(row) + ",7311,EUR,25", header=header) == (
        0,
        "1 match, 0 differ, 0 extra, 0 missing, 0 known already; 0 refused\n",
    )
    row.refresh_from_db()
    assert (row.settled_minor, row.settled_currency, row.fee_minor) == (7311, "EUR", 25)
    assert row.amount_minor == 3000
    assert reasons() == {}


def test_what_the_newest_report_settled_stands_in_whatever_order_reports_come(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "s-1")
    header = f"{HEADER},settled_minor,settled_currency,fee_minor"
    now = timezone.now()

    def settled(report: str, days_ago: int, minor: int) -> tuple[int | None, str]:
        at = (now - timedelta(days=days_ago)).isoformat()
        run(tmp_path, line(row, settled=at, report=report) + f",{minor},EUR,25", header=header)
        row.refresh_from_db()
        return row.settled_minor, row.settled_currency

    assert settled("rep-march", 3, 2700) == (2700, "EUR")
    assert settled("rep-april", 1, 2711) == (2711, "EUR")
    assert settled("rep-february", 9, 2650) == (2711, "EUR")
    assert SettlementLine.objects.filter(provider_refund_ref=row.ref).count() == 3


def test_missing_extra_and_different_become_cases_once(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    agrees, differs = (confirmed(provider, cast, ref) for ref in ("1000", "1001"))
    confirmed(provider, cast, "1002")  # stands in no report
    provider.payment("pi_1003")
    build.order("1003")
    extra = line(agrees, ref="rf_extra", payment="pi_1003", marker="", amount=3000)
    until = timezone.now().isoformat()
    rows = [line(agrees), line(differs, amount=2500), extra]
    assert run(tmp_path, *rows, more=("--complete-until", until)) == (
        0,
        "1 match, 1 differ, 1 extra, 1 missing, 0 known already; 0 refused\n",
    )
    assert reasons() == {"1001": ["mismatch"], "1002": ["contradiction"], "1003": ["external"]}
    assert "25.00 USD instead of 30.00 USD" in SettlementLine.objects.get(
        verdict="different"
    ).because.replace("\u202f", " ")
    assert ProviderRefund.objects.get(ref="rf_extra").counts
    before = everything()
    stored = SettlementLine.objects.count()
    assert run(tmp_path, *rows, more=("--complete-until", until)) == (
        0,
        "0 match, 0 differ, 0 extra, 0 missing, 3 known already; 0 refused\n",
    )
    assert everything() == before
    assert SettlementLine.objects.count() == stored == 4


def test_without_a_word_on_completeness_nothing_is_missing(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "1000")
    confirmed(provider, cast, "1001")
    run(tmp_path, line(row))
    assert reasons() == {}


def test_a_report_ends_no_unknown_by_itself_but_has_it_looked_up(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    provider.payment("pi_1000")
    build.order("1000")
    operation = build.authorized(cast.omar, cast.ben, order_ref="1000")
    provider.fault("drop_after_commit")
    assert dispatch.send(str(operation.pk)) == "unanswered"
    Operation.objects.update(due_at=timezone.now() + timedelta(hours=1))
    [made] = provider.refunds()
    shown = ProviderRefund(
        provider_account="plain-main",
        ref=made["id"],
        payment=operation.payment,
        operation=operation,
        amount_minor=7900,
    )
    run(tmp_path, line(shown))
    operation.refresh_from_db()
    assert operation.state == "unknown"
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()


def test_a_report_that_knows_more_of_what_has_no_end_yet_asks_nobody_and_has_it_looked_up(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    provider.payment("pi_1000", account="plain-async")
    build.order("1000", account="plain-async")
    operation = build.authorized(cast.omar, cast.ben, order_ref="1000")
    assert dispatch.send(str(operation.pk)) == "accepted"
    Operation.objects.update(due_at=timezone.now() + timedelta(hours=1))
    row = ProviderRefund.objects.select_related("payment").get(operation=operation)
    run(tmp_path, line(row))
    operation.refresh_from_db()
    assert (operation.state, reasons()) == ("pending", {})
    assert operation.due_at is not None
    assert operation.due_at <= timezone.now()


def test_a_line_of_a_known_report_with_other_content_is_refused(
    provider: SandboxProcess,
    cast: Cast,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = confirmed(provider, cast, "1000")
    run(tmp_path, line(row))
    assert run(tmp_path, line(row, amount=1)) == (
        1,
        "0 match, 0 differ, 0 extra, 0 missing, 0 known already; 1 refused\n",
    )
    assert "line 2: report_ref: " in capsys.readouterr().err


def test_stripes_export_is_read_with_its_signs_and_both_currencies(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "1000", account="stripe-main")
    refund = (
        f"po_1,txn_1,2026-11-29 14:02:11,eur,-73.11,0.25,-73.36,refund,{row.ref},-30.00,usd,"
        f"ch_1,{row.payment.ref},{row.operation_id}"
    )
    charge = (
        "po_1,txn_2,2026-11-29 14:00:00,eur,100.00,1.00,99.00,charge,ch_9,100.00,eur,ch_9,pi_9,"
    )
    more = ("--account", "stripe-main")
    assert run(tmp_path, refund, charge, header=STRIPE_HEADER, more=more) == (
        0,
        "1 match, 0 differ, 0 extra, 0 missing, 0 known already; 0 refused\n",
    )
    row.refresh_from_db()
    assert (row.settled_minor, row.settled_currency, row.fee_minor) == (7311, "EUR", 25)
    code, said = run(tmp_path, refund, header=STRIPE_HEADER)
    assert (code, "say --account" in said) == (2, True)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"amount": "30.00"}, 'amount_minor: "30.00" is not a whole number'),
        ({"account": "plain-nowhere"}, 'provider_account: "plain-nowhere" is not one of'),
        ({"report": ""}, "report_ref: empty; every row needs it"),
        ({"report": "a,b"}, "row: 11 cells; the header has 10"),
        ({"created": "noon"}, "created_at: "),
    ],
)
def test_a_wrong_line_is_named_and_the_others_are_taken(
    provider: SandboxProcess,
    cast: Cast,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: dict[str, str],
    said: str,
) -> None:
    row = confirmed(provider, cast, "1000")
    assert run(tmp_path, line(row, **other), line(row)) == (
        1,
        "1 match, 0 differ, 0 extra, 0 missing, 0 known already; 1 refused\n",
    )
    assert f"line 2: {said}" in capsys.readouterr().err


def test_a_file_with_other_columns_is_not_read(cast: Cast, tmp_path: Path) -> None:
    assert run(tmp_path, header="provider_account,amount") == (
        2,
        f"line 1: unknown column 'amount'; write the columns {HEADER}",
    )


def test_no_report_is_complete_about_a_time_to_come_nor_where_a_line_was_refused(
    provider: SandboxProcess, cast: Cast, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, unread = (confirmed(provider, cast, ref) for ref in ("1000", "1001"))
    ahead = (timezone.now() + timedelta(hours=1)).isoformat()
    code, said = run(tmp_path, line(row), more=("--complete-until", ahead))
    assert (code, "lies ahead" in said) == (2, True)
    assert not SettlementLine.objects.exists()
    now = timezone.now().isoformat()
    lines = [line(row), line(unread, amount="30.00")]
    assert run(tmp_path, *lines, more=("--complete-until", now)) == (
        1,
        "1 match, 0 differ, 0 extra, 0 missing, 0 known already; 1 refused\n",
    )
    assert "nothing is asked about" in capsys.readouterr().err
    assert (reasons(), SettlementCover.objects.count()) == ({}, 0)


def test_a_refund_and_its_failure_in_one_payout_say_that_it_was_not_paid(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "1000", account="stripe-main")
    turn(provider, row.ref, "failed")
    assert row.operation is not None
    reconciler.look_up(row.operation.pk)
    rest = f"{row.ref},-30.00,usd,ch_1,{row.payment.ref},{row.operation_id}"
    went = f"po_1,txn_1,2026-11-29 14:02:11,usd,-30.00,0.25,-30.25,refund,{rest}"
    came = f"po_1,txn_2,2026-11-30 09:00:00,usd,30.00,0.00,30.00,refund_failure,{rest}"
    more = ("--account", "stripe-main")
    assert run(tmp_path, went, came, header=STRIPE_HEADER, more=more) == (
        0,
        "1 match, 0 differ, 0 extra, 0 missing, 0 known already; 0 refused\n",
    )
    assert SettlementLine.objects.get().provider_status == "failed"
    assert reasons() == {"1000": ["remedy"]}


def test_two_imports_at_once_are_refused_before_a_row_is_read(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    row = confirmed(provider, cast, "1000")
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtext('aftersend import_settlement'))")
        code, said = run(tmp_path, line(row))
        assert (code, "start this one when it has ended" in said) == (2, True)
        assert not SettlementLine.objects.exists()
    finally:
        other.close()
    for _ in range(2):  # and the turn is given back
        assert run(tmp_path, line(row))[0] == 0
