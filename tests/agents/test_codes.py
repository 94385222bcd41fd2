"""The list of codes is whole: everything that is raised is in it, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from refunds.api import codes
from refunds.domain import sameness
from tests.provider_process import ROOT

# Codes of acts that people do on pages and commands; no agent's call comes there.
PEOPLE: Final = frozenset(
    {
        *("balance", "expired", "fingerprint_differs", "own_proposal", "proof_missing"),
        *("reason_too_short", "role_missing", "stale_page", "not_paused", "not_stopped"),
        *("no_quarantine", "resumed_by_the_same_person", "started_by_the_same_person"),
        *("two_people_needed", "key_ended", "life_too_long", "name_taken", "overlap_too_long"),
        *("owner_unknown", "scope_unknown", "scopes_never_together"),
        # Accepting a provider's figure
        *("reason_needed", "days_out_of_range", "seconds_out_of_range", "fact_unknown"),
        *("not_acceptable", "may_not_accept", "stated_already", "accepted_already"),
        *("confirmed_already", "confirmed_by_the_same_person", "withdrawn_already"),
        *("no_lookup", "no_key_window", "longer_than_the_key", "no_longer_open"),
        # Importing what another system left stuck
        *("currency_mismatch", "refund_of_another"),
        # Making good for a refund that did not reach the customer
        *("remedy_unknown", "remedy_not_owed", "remedy_too_large"),
    }
)
# Functions that get the code as their first argument.
PASSED_ON: Final = frozenset({"Refusal", "_refuse", "_refused", "_problem"})


def _raised(file: Path) -> Iterator[str]:
    """The codes that a module raises or says, also those that it takes from a table of its own."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in PASSED_ON and node.args:
            yield from _texts(_chosen(node.args[0], tree))
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (
                text
                for key, value in pairs
                if isinstance(key, ast.Constant) and key.value == "code"
                for text in _texts(value)
            )
        elif isinstance(node, ast.AnnAssign) and _name(node.target).startswith("_CODE_OF"):
            assert isinstance(node.value, ast.Dict)
            yield from (text for value in node.value.values for text in _texts(value))


def _chosen(argument: ast.expr, tree: ast.Module) -> ast.AST:
    """What the argument may be: itself, or every value that its name is given in the module."""
    if not isinstance(argument, ast.Name):
        return argument
    given = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and argument.id in map(_name, node.targets)
    ]
    return ast.Module(body=[ast.Expr(value) for value in given], type_ignores=[])


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _texts(node: ast.AST) -> Iterator[str]:
    """Text constants below a node, without those that are only compared or called with."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Module):
        for statement in node.body:
            yield from _texts(statement.value) if isinstance(statement, ast.Expr) else ()


def _all_raised() -> dict[str, set[str]]:
    """Code -> the files that raise it."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "refunds").rglob("*.py")):
        for code in _raised(file):
            found.setdefault(code, set()).add(file.name)
    for rule in sameness.RULES:
        if rule.code:
            found.setdefault(rule.code, set()).add("sameness.py")
    return found


def test_every_code_that_is_raised_is_in_the_list() -> None:
    unlisted = {
        code: files
        for code, files in _all_raised().items()
        if code not in codes.CODES and code not in PEOPLE
    }
    assert not unlisted


def test_every_code_in_the_list_is_raised() -> None:
    assert not (codes.CODES.keys() | PEOPLE) - _all_raised().keys()


def test_a_code_has_one_meaning() -> None:
    assert not codes.CODES.keys() & PEOPLE


def test_every_code_says_what_to_do_in_one_line() -> None:
    for name, code in codes.CODES.items():
        assert code.says.endswith("."), name
        assert len(code.says) < 170, name
