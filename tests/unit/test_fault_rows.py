"""The list of faults against the tests and the programs that exist (tests/fault_rows.toml)."""

from __future__ import annotations

import re

import pytest

from tests.bugs.test_bug_rows import functions_in
from tests.fault_rows import FILE, Row, rows, written
from tests.provider_process import ROOT
from tests.walkthrough.__main__ import STEPS

_TARGETS = frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_STEP = re.compile(r"\b[a-z]_[a-z0-9_]+")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.fault)
def test_what_is_said_to_prove_a_fault_survived_exists(row: Row) -> None:
    assert row.tests or row.programs or row.open
    for named in row.tests:
        path, function = named.split("::")
        assert function in functions_in(path), f"{path} has no {function}"
    for each in row.programs:
        command, _, what = each.partition(": ")
        assert what
        assert command.removeprefix("make ") in _TARGETS
        if command == "make walkthrough":
            assert set(_STEP.findall(what)) <= set(STEPS)


def test_the_page_shows_the_list_as_it_is() -> None:
    text = FILE.read_text()
    assert written(text) == text, "write it anew: python -m tests.fault_rows"
    assert text.partition("generated: faults")[2].count("\n| ") == len(rows()) + 1
