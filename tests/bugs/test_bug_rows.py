"""The list of public bug rows against the tests that exist (tests/bug_rows.toml)."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from typing import Any

import pytest

from tests.provider_process import ROOT

REASONS_MAX = 6
_LIST = tomllib.loads((ROOT / "tests/bug_rows.toml").read_text())
IDS: list[str] = _LIST["ids"]
ROWS: dict[str, dict[str, Any]] = _LIST["rows"]
SEQUENCES: list[str] = _LIST["sequences"]


@cache
def functions_in(path: str) -> frozenset[str]:
    """Names of the test functions of one file, as it is written."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    )


def named_tests() -> list[tuple[str, str, str]]:
    """(row, file, function) of every test that the list names."""
    return [(row, *named.split("::", 1)) for row in ROWS for named in ROWS[row].get("test", [])]


def test_every_row_is_tested_or_impossible_and_none_waits() -> None:
    assert len(IDS) == len(set(IDS))
    assert list(ROWS) == IDS
    for row, says in ROWS.items():
        assert set(says) in ({"test"}, {"reason", "guard"}), row
        assert all(says.values()), row


def test_each_sequence_is_a_test_by_its_name() -> None:
    assert len(SEQUENCES) == 4
    for number, named in enumerate(SEQUENCES, 1):
        path, function = named.split("::")
        assert function.startswith(f"test_sequence_{number}_")
        assert function in functions_in(path), f"{path} has no {function}"


def test_no_more_than_six_reasons_make_a_row_impossible() -> None:
    reasons = {says["reason"] for says in ROWS.values() if "reason" in says}
    assert len(reasons) <= REASONS_MAX


@pytest.mark.parametrize("row", IDS)
def test_each_named_test_exists_under_the_name_of_its_row(row: str) -> None:
    for owner, path, function in named_tests():
        if owner == row:
            assert function in functions_in(path), f"{path} has no {function}"
            assert function.startswith(f"test_{row.lower()}_")


def test_each_test_of_a_row_is_in_the_list() -> None:
    listed = {(path, function) for _, path, function in named_tests()}
    written = {
        (str(path.relative_to(ROOT)), function)
        for path in (ROOT / "tests/bugs").glob("test_*.py")
        for function in functions_in(str(path.relative_to(ROOT)))
        if function.removeprefix("test_").partition("_")[0].upper() in IDS
    }
    assert written <= listed
