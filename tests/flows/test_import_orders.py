"""Orders from a CSV file: each whole or not at all, every error with its line and its cure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from refunds.models import Order, Payment
from tests import build
from tests.flows.door import books

pytestmark = pytest.mark.django_db

HEADER = (
    "order_ref,feed_seq,currency,customer_ref,payment_ref,provider_account,payment_state,"
    "captured_minor,captured_at"
)
DECIMAL_HEADER = HEADER.replace("captured_minor", "captured")


@pytest.fixture
def taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Importer:
    return Importer(tmp_path / "orders.csv", capsys)


class Importer:
    """Runs the command on a file; `code` is how it would end, `says` its standard error."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys = path, capsys
        self.out = self.says = ""

    def __call__(self, *rows: str, header: str = HEADER) -> int:
        return self.take("\n".join([header, *rows, ""]).encode())

    def take(self, content: bytes) -> int:
        self.path.write_bytes(content)
        code = 0
        says = ""
        try:
            call_command("import_orders", str(self.path))
        except CommandError as error:
            code, says = error.returncode, str(error)
        except SystemExit as end:
            code = int(str(end.code))
        self.out, progress = self.capsys.readouterr()
        self.says = progress + says
        return code


def row(ref: str = "4821", **changes: str) -> str:
    cells = {
        "order_ref": ref,
        "feed_seq": "1",
        "currency": "USD",
        "customer_ref": "cus_204",
        "payment_ref": f"pi_{ref}",
        "provider_account": "plain-main",
        "payment_state": "captured",
        "captured": "12900",
        "captured_at": "2026-11-20T09:00:00Z",
    } | changes
    return ",".join(cells.values())


def test_orders_are_taken_with_all_their_payments(taken: Importer) -> None:
    assert taken(row(), row(payment_ref="pi_second", captured="500"), row("4822")) == 0
    assert "2 orders taken, 2 of them changed; 0 refused" in taken.out
    assert "100%" in taken.says
    order = Order.objects.get(ref="4821")
    assert (order.version, order.feed_seq, order.customer_ref) == (1, 1, "cus_204")
    assert list(order.payments.order_by("ref").values_list("ref", "captured_minor")) == [
        ("pi_4821", 12900),
        ("pi_second", 500),
    ]
    before = books()
    assert taken(row(), row(payment_ref="pi_second", captured="500"), row("4822")) == 0
    assert "2 orders taken, 0 of them changed" in taken.out
    assert books() == before


@pytest.mark.parametrize(
    ("currency", "text", "minor"),
    [
        ("USD", "129.00", 12900),
        ("EUR", "19.99", 1999),
        ("USD", "129", 12900),
        ("JPY", "12900", 12900),
        ("KWD", "12.900", 12900),
        ("KWD", "1.5", 1500),
        ("USD", "0.00", 0),
    ],
)
def test_b055_decimal_amounts_follow_their_currency(
    taken: Importer, currency: str, text: str, minor: int
) -> None:
    assert taken(row(currency=currency, captured=text), header=DECIMAL_HEADER) == 0
    assert Payment.objects.get().captured_minor == minor


def test_minor_units_are_read_as_they_are_in_every_currency(taken: Importer) -> None:
    assert taken(*(row(currency, currency=currency) for currency in ("JPY", "USD", "KWD"))) == 0
    assert set(Payment.objects.values_list("captured_minor", flat=True)) == {12900}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"captured": "12.90"},
            'captured_minor: "12.90" is not a whole number of minor units; write 1290,'
            " or use the column captured",
        ),
        (
            {"captured": "12.900", "currency": "KWD"},
            'captured_minor: "12.900" is not a whole number of minor units; write 12900,'
            " or use the column captured",
        ),
        ({"captured": '"10,50"'}, "captured_minor: \"10,50\" is not a whole number of minor units"),
        ({"captured": "-5"}, 'captured_minor: "-5" is not'),
        ({"captured": ""}, 'captured_minor: "" is not'),
        ({"captured": "1e3"}, 'captured_minor: "1e3" is not'),
        ({"captured": "1" * 13}, "captured_minor: "),
        ({"currency": "usd"}, "currency: 'usd' is not an ISO 4217 currency"),
        ({"provider_account": "paypal"}, 'provider_account: "paypal" is not one of: '),
        ({"payment_state": "paid"}, 'payment_state: "paid" is not one of: uncaptured, captured'),
        ({"captured_at": "2026-11-20"}, "captured_at: '2026-11-20' has no time zone."),
        ({"captured_at": "2026-11-20T09:00:00"}, "captured_at: '2026-11-20T09:00:00' has no time"),
        ({"captured_at": "20.11.2026"}, "captured_at: '20.11.2026' is not an ISO 8601 instant."),
        ({"feed_seq": "one"}, 'feed_seq: "one" is not a whole number'),
        ({"feed_seq": "-1"}, 'feed_seq: "-1" is not a whole number'),
        ({"customer_ref": "4111111111111111"}, "customer_ref: "),
        ({"payment_ref": ""}, "payment_ref: payment_ref is empty."),
        ({"payment_ref": "pi\x00"}, "payment_ref: payment_ref has control characters."),
        ({"captured_at": "2026-11-20T09:00:00Z,more"}, "row: 10 cells; the header has 9"),
    ],
)  # fmt: skip
def test_a_wrong_cell_refuses_its_order_and_no_other(
    taken: Importer, changes: dict[str, str], says: str
) -> None:
    assert taken(row("1"), row("2", **changes), row("3")) == 1
    assert f"line 3: {says}" in taken.says
    assert set(Order.objects.values_list("ref", flat=True)) == {"1", "3"}
    assert "2 orders taken" in taken.out
    assert "1 refused" in taken.out


@pytest.mark.parametrize("text", ["10,50", "1.050,00", "12.905", "-5.00", "+5", "1e2", "", "$5"])
def test_b065_one_form_of_decimal_amounts_is_read(taken: Importer, text: str) -> None:
    quoted = f'"{text}"'
    assert taken(row(captured=quoted), header=DECIMAL_HEADER) == 1
    assert "line 2: captured: " in taken.says
    assert not Order.objects.exists()


def test_every_wrong_cell_of_an_order_is_named(taken: Importer) -> None:
    assert taken(row(captured="x", captured_at="x"), row(payment_ref="pi_b", feed_seq="2")) == 1
    for line in ("line 2: captured_minor: ", "line 2: captured_at: ", "line 3: feed_seq: differs"):
        assert line in taken.says


def test_rows_of_an_order_must_agree_and_name_a_payment_once(taken: Importer) -> None:
    assert taken(row(), row(payment_ref="pi_b", currency="EUR", customer_ref="cus_1"), row()) == 1
    assert "line 3: currency: differs from line 2 of the same order" in taken.says
    assert "line 3: customer_ref: differs from line 2 of the same order" in taken.says
    assert 'line 4: payment_ref: "pi_4821" stands twice' in taken.says
    assert not Order.objects.exists()


def test_an_order_torn_apart_is_refused_whole(taken: Importer) -> None:
    assert taken(row("1"), row("2"), row("1", payment_ref="pi_b"), row("3"), row("1")) == 1
    assert taken.says.count("order_ref: the rows of order 1 do not stand together") == 1
    assert "line 4: order_ref: " in taken.says
    assert "it began at line 2" in taken.says
    assert set(Order.objects.values_list("ref", flat=True)) == {"2", "3"}


def test_older_and_conflicting_facts_are_refused_with_their_line(taken: Importer) -> None:
    build.order("9", feed_seq=5)
    before = books()
    assert taken(row("9", feed_seq="4", payment_ref="pi_9")) == 1
    assert (
        "line 2: feed_seq: Order 9 already holds a newer snapshot (5); this one is 4." in taken.says
    )
    assert "Send the current facts" in taken.says
    assert taken(row("9", feed_seq="5", payment_ref="pi_9", captured="1")) == 1
    assert books() == before


def test_a_payment_of_another_order_is_refused(taken: Importer) -> None:
    build.order("9")
    assert taken(row("10", payment_ref="pi_9")) == 1
    assert "line 2: payment_ref: Payment pi_9 belongs to another order or currency." in taken.says
    assert not Order.objects.filter(ref="10").exists()


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (HEADER + ",frozen", "line 1: unknown column 'frozen'"),
        (HEADER + ",captured", "line 1: "),
        (HEADER.replace(",captured_minor", ""), "line 1: "),
        (HEADER.replace("currency,", ""), "line 1: missing currency"),
        (HEADER + ",order_ref", "line 1: the column 'order_ref' stands twice"),
        (HEADER.replace(",", ";"), "line 1: unknown column"),
        ("", "line 1: missing order_ref"),
    ],
)
def test_a_wrong_header_ends_it_before_anything_is_taken(
    taken: Importer, header: str, says: str
) -> None:
    assert taken(row(), header=header) == 2
    assert says in taken.says
    assert "write the columns order_ref," in taken.says or "stands twice" in taken.says
    assert not Order.objects.exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{HEADER}\n{row('1')}\n{row('2')}\n".encode() + b"\xff\xfe\n", "not UTF-8"),
        (f'{HEADER}\n{row("1")}\n"2,never closed\n'.encode(), "line 3: "),
        (f"{HEADER}\n{row('1')}\n{row('x' * 140_000)}\n".encode(), "line 3: "),
        (b"", "line 1: missing"),
    ],
)
def test_a_file_that_is_not_readable_to_its_end_is_not_begun(
    taken: Importer, content: bytes, says: str
) -> None:
    assert taken.take(content) == 2
    assert says in taken.says
    assert not Order.objects.exists()


def test_a_file_that_is_not_there_says_so(taken: Importer) -> None:
    with pytest.raises(CommandError, match="No such file") as missing:
        call_command("import_orders", "/nowhere/orders.csv")
    assert missing.value.returncode == 2


def test_spreadsheet_files_with_marks_and_line_ends_are_read(taken: Importer) -> None:
    content = f"\ufeff{HEADER}\r\n{row('1')}\r\n\r\n{row('2')}\r\n"
    assert taken.take(content.encode()) == 0
    assert Order.objects.count() == 2


def test_the_order_of_columns_is_free(taken: Importer) -> None:
    header = ",".join(reversed(HEADER.split(",")))
    assert taken(",".join(reversed(row().split(","))), header=header) == 0
    assert Payment.objects.get().captured_minor == 12900


def test_b139_accents_in_references_are_kept(taken: Importer) -> None:
    name = "Zoe\u0301 O\u2019Brien"
    assert taken(row(customer_ref=name)) == 0
    assert Order.objects.get().customer_ref == name


@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_away_leaves_whole_orders_only(taken: Importer) -> None:
    build.order("2")
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters) as other:
        other.execute("SELECT 1 FROM orders WHERE ref = '2' FOR UPDATE")
        assert taken(row("1"), row("2"), row("3")) == 1
        other.rollback()
    assert "line 3: the database went away" in taken.says
    assert set(Order.objects.values_list("ref", flat=True)) == {"1", "2"}
    assert taken(row("1"), row("2"), row("3")) == 0


@pytest.mark.django_db(transaction=True)
def test_the_command_ends_with_its_codes(tmp_path: Path) -> None:
    """As an operator runs it: a program of its own, on the database of this test."""
    name = connection.settings_dict["NAME"]
    host, port = connection.settings_dict["HOST"], connection.settings_dict["PORT"]
    user = connection.settings_dict["USER"]
    environment = os.environ | {
        "DATABASE_URL": f"postgresql://{user}@/{name}?host={host}&port={port}"
    }
    path = tmp_path / "orders.csv"

    def run(*lines: str) -> subprocess.CompletedProcess[str]:
        path.write_text("\n".join([*lines, ""]))
        return subprocess.run(
            [sys.executable, "manage.py", "import_orders", str(path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    refused = run(HEADER, row("1"), row("2", captured="x"))
    assert (refused.returncode, refused.stdout) == (
        1,
        "1 orders taken, 1 of them changed; 1 refused\n",
    )
    assert "line 3: captured_minor: " in refused.stderr
    assert Order.objects.get().ref == "1"
    unreadable = run("nonsense")
    assert (unreadable.returncode, unreadable.stdout) == (2, "")
    assert "line 1: unknown column 'nonsense'" in unreadable.stderr
