"""Changes one line of what decides at a time; the unit and model tests must notice each change.

`python -m tests.mutants`, or `make mutants`; with names of modules for some of them, `EVERY=n` for
each nth mutant. Last line of stdout: {"killed": n, "survived": [...], "ok": bool}; exit 1 when a
mutant survives that `accepted.toml` does not list with a reason.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = (
    *("reconciliation.decide", "reconciliation.proof", "reconciliation.patience"),
    *("reconciliation.lateness", "reconciliation.matching"),
    *("refunds.domain.contract", "refunds.domain.outcome"),
)
TESTS = (
    *("tests/unit/test_decide.py", "tests/unit/test_decide_waiting.py"),
    *("tests/unit/test_contract.py", "tests/unit/test_matching.py", "tests/model"),
)
_SECONDS_MAX = 240
_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Each mutant of a module: where and how it differs, and its whole text."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for how, change in _changes(node):
            other = copy.deepcopy(tree)
            target = list(ast.walk(other))[number]
            change(target)
            yield f"line {getattr(node, 'lineno', 0)}: {how}", ast.unparse(other)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    if isinstance(node, ast.Compare):
        old = type(node.ops[0])

        def swap(target: ast.AST) -> None:
            assert isinstance(target, ast.Compare)
            target.ops[0] = _SWAPPED[old]()

        yield f"{old.__name__} becomes {_SWAPPED[old].__name__} in {ast.unparse(node)}", swap
    elif isinstance(node, ast.BoolOp):
        new = ast.Or if isinstance(node.op, ast.And) else ast.And

        def turn(target: ast.AST) -> None:
            assert isinstance(target, ast.BoolOp)
            target.op = new()

        yield f"{new.__name__} in {ast.unparse(node)[:70]}", turn
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):

        def drop(target: ast.AST) -> None:
            assert isinstance(target, ast.UnaryOp)
            target.operand = ast.UnaryOp(op=ast.Not(), operand=target.operand)

        yield f"no longer {ast.unparse(node)[:70]}", drop
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = ast.Sub if isinstance(node.op, ast.Add) else ast.Add

        def flip(target: ast.AST) -> None:
            assert isinstance(target, ast.BinOp)
            target.op = sign()

        yield f"{sign.__name__} in {ast.unparse(node)[:70]}", flip
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):

        def negate(target: ast.AST) -> None:
            assert isinstance(target, ast.Constant)
            target.value = not target.value

        yield f"{not node.value} for {node.value}", negate


_LOADER = """
import importlib.abc, importlib.util, pathlib, sys
class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == NAME else None
    def exec_module(self, module):
        exec(compile(pathlib.Path(FILE).read_text(), FILE, 'exec'), module.__dict__)
NAME, FILE = sys.argv.pop(1), sys.argv.pop(1)
sys.meta_path.insert(0, Changed())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def killed(module: str, text: str, folder: Path) -> bool:
    """Whether a test fails with the mutant in the module's place."""
    file = folder / "mutant.py"
    file.write_text(text)
    command = [sys.executable, "-c", _LOADER, module, str(file), *TESTS]
    options = ("-x", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider")
    try:
        ended = subprocess.run(
            [*command, *options], cwd=ROOT, capture_output=True, timeout=_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


def main(wanted: list[str]) -> int:
    accepted = tomllib.loads((Path(__file__).parent / "accepted.toml").read_text())
    every = int(os.environ.get("EVERY", "1"))
    count, survived = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        for module in wanted or MODULES:
            source = (ROOT / (module.replace(".", "/") + ".py")).read_text()
            if killed(module, ast.unparse(ast.parse(source)), Path(scratch)):
                print(f"the tests fail without any change of {module}", file=sys.stderr)
                return 1
            for number, (where, text) in enumerate(mutants(source)):
                if number % every:
                    continue
                if killed(module, text, Path(scratch)):
                    count += 1
                    continue
                name = f"{module}: {where.partition(': ')[2]}"
                if name not in accepted["because"]:
                    survived.append(f"{module} {where}")
                    print(f"survived: {module} {where}", flush=True)
    print(json.dumps({"killed": count, "survived": survived, "ok": not survived}))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
