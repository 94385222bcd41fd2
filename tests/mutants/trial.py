"""One mutant before the tests: a process of its own, made from one that has nothing of ours loaded but this."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = (
    *("tests/unit/test_decide.py", "tests/unit/test_decide_waiting.py"),
    *("tests/unit/test_afterwards.py", "tests/unit/test_proof.py", "tests/unit/test_contract.py"),
    *("tests/unit/test_matching.py", "tests/unit/test_lateness.py", "tests/unit/test_outcome.py"),
    *("tests/unit/test_values.py", "tests/model/test_decide_restated.py"),
)
# What is tried is pure, and so are its tests: no Django, no database, no fixtures of the house.
_OPTIONS = (
    *("-x", "-q", "-c", os.devnull, "--rootdir", str(ROOT), "--noconftest"),
    *("-p", "no:cacheprovider"),
)
_SECONDS_MAX = 240


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant's text where its module is asked for."""

    def __init__(self, module: str, text: str, file: Path) -> None:
        self.module, self.text, self.file = module, text, file

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.text, self.file, "exec"), module.__dict__)  # noqa: S102 - the mutant


def killed(module: str, text: str, folder: Path) -> bool:
    """Whether a test fails, or hangs, with the mutant in the module's place."""
    child = os.fork()
    if child == 0:
        _run(module, text, folder)
    ended = os.pidfd_open(child)
    try:
        if not select.select([ended], [], [], _SECONDS_MAX)[0]:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(ended)
    return status != 0


def _run(module: str, text: str, folder: Path) -> None:
    code = 1
    try:
        quiet = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.meta_path.insert(0, _Changed(module, text, folder / "mutant.py"))
        os.chdir(ROOT)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        code = int(pytest.main([*_OPTIONS, *TESTS]))
    finally:
        os._exit(code)
