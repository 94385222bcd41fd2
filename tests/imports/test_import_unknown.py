"""What another system left stuck: each row ends by its reference or waits for a person."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from reconciliation import reconciler
from reconciliation.models import Case
from reconciliation.verifiers import tables
from refunds import dispatch
from refunds.domain import states
from refunds.models import Attempt, Event, Operation, Payment, Reservation
from tests import build
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.ledger.rows import everything, held_equals_reservations, history
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
HEADER = "source_ref,provider_account,payment_ref,amount_minor,currency,requested_at,"
HEADER += "provider_refund_ref"


def line(number: int, ref: str = "", **other: object) -> str:
    """A stuck refund of 50.00 on payment `number`, asked for a day ago."""
    asked = (timezone.now() - timedelta(days=1)).isoformat()
    cells: dict[str, object] = {
        "source": f"old-{number}",
        "account": "plain-main",
        "payment": f"pi_{number}",
        "amount": 5000,
        "currency": "USD",
        "at": asked,
        "ref": ref,
    }
    return ",".join(str(each) for each in (cells | other).values())


def run(tmp_path: Path, *lines: str, by: str = "ines", header: str = HEADER) -> tuple[int, str]:
    """(exit code, what it printed) for real."""
    return command(tmp_path, [header, *lines], "--for-real", by=by)


def command(tmp_path: Path, lines: list[str], *more: str, by: str = "ines") -> tuple[int, str]:
    file = tmp_path / "stuck.csv"
    file.write_text("\n".join(lines) + "\n")
    out = StringIO()
    try:
        call_command("import_unknown", str(file), "--by", by, *more, stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def elsewhere(provider: SandboxProcess, number: int, amount_minor: int = 5000) -> str:
    """A refund that the other system made at the provider; its reference."""
    made = provider.control(
        "POST",
        "/external_refund",
        {"account": "plain-main", "payment": f"pi_{number}", "amount_minor": amount_minor},
    )
    return str(made["id"])


def stage(provider: SandboxProcess, *numbers: int) -> None:
    for number in numbers:
        provider.payment(f"pi_{number}")
        build.order(str(number))


def looked() -> None:
    for pk in Operation.objects.values_list("pk", flat=True):
        reconciler.look_up(pk)


def test_37_stuck_rows_become_20_ends_and_17_cases_and_none_is_sent(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    numbers = range(1000, 1037)
    stage(provider, *numbers)
    done, absent, other, two = numbers[:20], numbers[20:29], numbers[29:34], numbers[34:]
    lines = [line(each, elsewhere(provider, each)) for each in done]
    lines += [line(each) for each in absent]
    lines += [line(each, elsewhere(provider, each, 4000)) for each in other]
    for each in two:
        elsewhere(provider, each)
        elsewhere(provider, each)
        lines.append(line(each))
    in_book = len(provider.refunds())
    assert run(tmp_path, *lines) == (0, "37 taken over, 0 known already; 0 refused\n")
    looked()
    state = {each.order.ref: each.state for each in Operation.objects.select_related("order")}
    assert {state[str(each)] for each in done} == {states.SUCCEEDED}
    assert {state[str(each)] for each in [*absent, *other, *two]} == {states.UNKNOWN}
    cases = Case.objects.filter(closed_at=None).select_related("operation__order")
    reasons = {case.operation.order.ref: case.reasons for case in cases if case.operation}
    assert reasons == {
        **{str(each): ["unresolved"] for each in [*absent, *two]},
        **{str(each): ["mismatch"] for each in other},
    }
    assert Payment.objects.get(ref="pi_1000").refunded_minor == 5000
    assert held_equals_reservations()
    assert Reservation.objects.filter(state="held").count() == 17
    for pk in Operation.objects.values_list("pk", flat=True):
        dispatch.send(str(pk))
    assert len(provider.refunds()) == in_book
    assert not [call for call in provider.calls() if call["method"] == "POST"]
    assert not Attempt.objects.exists()
    for each in two:
        operation = Operation.objects.get(order__ref=str(each))
        found = operation.evidence.get(kind="lookup").facts["candidates"]
        assert [(one["amount_minor"], one["ours"]) for one in found] == [(5000, False)] * 2


def test_a_dry_run_is_the_default_and_stores_nothing(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    stage(provider, 1000)
    before = everything()
    code, said = command(tmp_path, [HEADER, line(1000), line(1001)])
    assert code == 1
    assert said.startswith("1 would be taken over, 0 are known already; 1 refused. Nothing was")
    assert everything() == before


def test_importing_twice_changes_nothing(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    stage(provider, 1000)
    rows = [line(1000, elsewhere(provider, 1000))]
    run(tmp_path, *rows)
    looked()
    before = everything()
    assert run(tmp_path, *rows) == (0, "0 taken over, 1 known already; 0 refused\n")
    assert everything() == before
    operation = Operation.objects.get()
    assert history(operation) == ["adopted", "found_succeeded"]
    first = Event.objects.get(operation=operation, seq=1)
    assert (first.actor_kind, first.actor) == ("operators", "person:ines")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"payment": "pi_9"}, "payment_ref: no payment pi_9 of plain-main is known; feed its"),
        ({"account": "plain-nowhere"}, 'provider_account: "plain-nowhere" is not one of: '),
        ({"amount": "50.00"}, 'amount_minor: "50.00" is not a whole number of minor units'),
        ({"amount": "-5000"}, 'amount_minor: "-5000" is not a whole number of minor units'),
        ({"currency": "EUR"}, "currency: The payment is in USD."),
        ({"currency": "XXX"}, "currency: "),
        ({"at": "yesterday"}, "requested_at: "),
        ({"source": ""}, "source_ref: empty; every row needs it"),
        ({"ref": "rf_1,more"}, "row: 8 cells; the header has 7"),
    ],
)
def test_a_wrong_row_is_named_by_line_and_column_and_the_others_are_taken(
    provider: SandboxProcess,
    cast: Cast,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: dict[str, str],
    said: str,
) -> None:
    stage(provider, 1000, 1001)
    code, summary = run(tmp_path, line(1000, **other), line(1001))
    assert (code, summary) == (1, "1 taken over, 0 known already; 1 refused\n")
    assert re.search(f"line 2: {re.escape(said)}", capsys.readouterr().err)
    assert Operation.objects.get().order.ref == "1001"


def test_what_is_ours_or_of_another_wish_is_not_taken_over(
    provider: SandboxProcess, cast: Cast, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(provider, 1000, 1001)
    ours = build.authorized(cast.omar, cast.ben, order_ref="1000", amount_minor=5000)
    assert dispatch.send(str(ours.pk)) == "confirmed"
    ref = provider.refunds()[0]["id"]
    build.proposed(cast.omar, "1001", 5000)
    assert run(tmp_path, line(1000, ref), line(1001))[0] == 1
    said = capsys.readouterr().err
    assert f"line 2: provider_refund_ref: {ref} is known as the refund of " in said
    assert "line 3: amount_minor: An equal refund of this payment has not ended" in said
    assert Payment.objects.get(ref="pi_1000").held_minor == 0


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("source_ref,payment_ref", "missing provider_account, amount_minor"),
        (HEADER + ",note", "unknown column 'note'"),
    ],
)
def test_a_file_with_other_columns_is_not_read(
    cast: Cast, tmp_path: Path, header: str, said: str
) -> None:
    code, error = run(tmp_path, header=header)
    assert code == 2
    assert said in error


def test_only_those_who_may_take_over_do(cast: Cast, tmp_path: Path) -> None:
    code, error = run(tmp_path, by="ben")
    assert code == 1
    assert "needs one of the roles admin, ops_lead" in error


def test_its_page_says_where_it_comes_from_and_the_standing_checks_find_nothing_wrong(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    stage(provider, 1000, 1001)
    run(tmp_path, line(1000), line(1001, elsewhere(provider, 1001)))
    looked()
    stuck = Operation.objects.get(state=states.UNKNOWN)
    page = text(signed_in(cast.omar).get(f"/operations/{stuck.pk}"))
    assert "Another system sent it and no answer is known." in page
    assert tables.check([each.order_id for each in Operation.objects.all()]) == []


def test_a_payment_that_is_held_by_it_leaves_no_room_for_another(
    provider: SandboxProcess, cast: Cast, tmp_path: Path
) -> None:
    stage(provider, 1000)
    run(tmp_path, line(1000, amount=12000))
    denied: Any = build.proposed(cast.omar, "1000", 5000)
    assert denied.state == states.DENIED
