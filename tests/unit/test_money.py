"""Amounts: exact in both directions, for currencies with no, two and three digits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refunds.domain import money
from refunds.domain.errors import Refusal
from refunds.domain.fingerprint import digest

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = {"JPY": 0, "KRW": 0, "USD": 2, "EUR": 2, "HUF": 2, "KWD": 3, "BHD": 3}
currencies = st.sampled_from(sorted(DIGITS))
amounts = st.integers(min_value=1, max_value=money.AMOUNT_MINOR_MAX)


@pytest.mark.parametrize(("currency", "digits"), sorted(DIGITS.items()))
def test_a_currency_has_the_digits_of_iso_4217(currency: str, digits: int) -> None:
    assert money.exponent(currency) == digits


@pytest.mark.parametrize("currency", ["usd", "US", "", "XXX", "QQQ", "USDX", "US\u0000", "ＵＳＤ"])
def test_an_unknown_currency_is_refused(currency: str) -> None:
    with pytest.raises(Refusal) as refused:
        money.exponent(currency)
    assert refused.value.code == "currency_unknown"
    assert refused.value.what_to_do


@given(amount_minor=amounts, currency=currencies)
def test_what_is_written_for_machines_reads_back_exactly(amount_minor: int, currency: str) -> None:
    written = money.decimal_text(amount_minor, currency)
    assert money.parse_amount(written, currency) == amount_minor


@given(amount_minor=amounts, currency=currencies)
def test_what_is_shown_to_people_reads_back_exactly(amount_minor: int, currency: str) -> None:
    number, _, code = money.display(amount_minor, currency).rpartition(" ")
    assert code == currency
    assert money.parse_amount(number.replace("\u202f", ""), currency) == amount_minor


@given(whole=st.integers(min_value=0, max_value=10**9), currency=currencies)
def test_one_digit_too_many_is_a_fraction_and_never_rounded(whole: int, currency: str) -> None:
    text = f"{whole}.{'0' * DIGITS[currency]}5"
    with pytest.raises(Refusal) as refused:
        money.parse_amount(text, currency)
    assert refused.value.code == "amount_fraction"


@given(text=st.text(max_size=12))
def test_any_text_is_an_exact_amount_or_a_named_refusal(text: str) -> None:
    try:
        read: int | str = money.parse_amount(text, "USD")
    except Refusal as refusal:
        read = refusal.code
    if isinstance(read, int):
        assert 1 <= read <= money.AMOUNT_MINOR_MAX
    else:
        assert read in {"amount_format", "amount_fraction", "amount_zero", "amount_negative"} | {
            "amount_too_large"
        }


@pytest.mark.parametrize(
    ("text", "currency", "amount_minor"),
    [
        ("79.00", "USD", 7900),
        ("79", "USD", 7900),
        ("79.5", "USD", 7950),
        ("0.01", "USD", 1),
        ("1000", "JPY", 1000),
        ("1.234", "KWD", 1234),
        ("1234.50", "HUF", 123450),
        ("9999999999.99", "USD", 999_999_999_999),
    ],
)
def test_an_amount_is_read_as_minor_units(text: str, currency: str, amount_minor: int) -> None:
    assert money.parse_amount(text, currency) == amount_minor


@pytest.mark.parametrize(
    ("text", "currency", "code"),
    [
        ("0", "USD", "amount_zero"),
        ("0.00", "USD", "amount_zero"),
        ("-1", "USD", "amount_negative"),
        ("-0.01", "USD", "amount_negative"),
        ("1.005", "USD", "amount_fraction"),
        ("1.5", "JPY", "amount_fraction"),
        ("1.2345", "KWD", "amount_fraction"),
        ("10000000000.00", "USD", "amount_too_large"),
        ("1000000000000", "JPY", "amount_too_large"),
        *(
            (text, "USD", "amount_format")
            for text in (
                *("", " 1", "1 ", "1\n", "+1", "01", "1.", ".5", "1,00", "1_000", "1e3", "NaN"),
                *("Infinity", "0x10", "７９", "٣", "1.0.0", "--1", "79.00 USD", "$79"),
            )
        ),
    ],
)
def test_a_bad_amount_is_named(text: str, currency: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        money.parse_amount(text, currency)
    assert (refused.value.code, refused.value.field) == (code, "amount")
    assert refused.value.what_to_do


@pytest.mark.parametrize(
    ("amount_minor", "code"),
    [(0, "amount_zero"), (-1, "amount_negative"), (10**12, "amount_too_large")],
)
def test_minor_units_have_the_same_limits(amount_minor: int, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        money.check_minor(amount_minor)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("amount_minor", "currency", "shown"),
    [
        (124000, "EUR", "1\u202f240.00 EUR"),
        (1000, "JPY", "1\u202f000 JPY"),
        (1234567, "KWD", "1\u202f234.567 KWD"),
        (5, "HUF", "0.05 HUF"),
        (-5, "USD", "-0.05 USD"),
        (-124000, "EUR", "-1\u202f240.00 EUR"),
        (0, "USD", "0.00 USD"),
    ],
)
def test_an_amount_is_shown_with_its_code_after_it(
    amount_minor: int, currency: str, shown: str
) -> None:
    assert money.display(amount_minor, currency) == shown


MONEY_CODE = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("refunds/**/*.py", "reconciliation/**/*.py")
    for path in ROOT.glob(pattern)
    # Durations of the engine are seconds with a fraction; no amount is near them.
    if path.name not in ("limits.py", "0001_initial.py", "doorbell.py")
)


@pytest.mark.parametrize("path", MONEY_CODE)
def test_no_amount_meets_a_float(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("float", "round"), f"{path}:{node.lineno}"
        if isinstance(node, ast.AnnAssign | ast.arg) and isinstance(node.annotation, ast.Name):
            name = node.target if isinstance(node, ast.AnnAssign) else node
            if node.annotation.id == "float":
                assert "minor" not in ast.unparse(name), f"{path}:{node.lineno}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            sides = ast.unparse(node)
            assert "minor" not in sides, f"{path}:{node.lineno}: {sides}"


def test_a_float_never_enters_a_digest() -> None:
    assert digest({"amount": [1, {"minor": 2}]})
    with pytest.raises(AssertionError):
        digest({"amount": [1, {"minor": 2.0}]})
