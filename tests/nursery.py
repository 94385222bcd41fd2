"""Runs of `python -m` that begin with all imported that is not ours: most of their time is that.

One process for a tree, which forks for each run. What is ours is imported by each child anew, as
the tree is then.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import random
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HERE = "tests.nursery"


class Nursery:
    """Forks in `tree`; close it in the end."""

    def __init__(self, tree: Path, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._process = subprocess.Popen(
            [sys.executable, "-m", _HERE],
            cwd=tree,
            env={**environment, "DJANGO_SETTINGS_MODULE": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *words: str, more: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """`python -m` and these words, with more in its environment. Raises TimeoutExpired, and
        EOFError when the process that forks is gone."""
        with tempfile.TemporaryDirectory(prefix="nursery-") as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            asked = {"words": words, "out": str(out), "err": str(err), "seconds": seconds}
            code = self._asked(asked | {"environment": self._environment | dict(more)})
            if code is None:
                raise subprocess.TimeoutExpired(words, seconds)
            return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _asked(self, what: dict[str, Any]) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"{_HERE} is gone")
        code: int | None = json.loads(line)
        return code


def main() -> None:
    warmed = False
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if not warmed:
            _warm(_foreign_modules(asked["environment"]))
            warmed = True
        child = os.fork()
        if child == 0:
            os._exit(_child(asked))
        print(json.dumps(_ended(child, asked["seconds"])), flush=True)


def _foreign_modules(environment: dict[str, str]) -> list[str]:
    """What a run imports that does not come from this tree, as a child tells that has done it."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        os.environ.update(environment)
        importlib.import_module("tests.environment").pytest_configure()
        importlib.import_module("django").setup()
        importlib.import_module("tests.simulation.play")
        tree = f"{Path.cwd()}{os.sep}"
        files = {name: getattr(each, "__file__", None) for name, each in sys.modules.items()}
        foreign = [name for name, file in files.items() if file and not file.startswith(tree)]
        os.write(writes, json.dumps(foreign).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as told:
        text = told.read()
    os.waitpid(child, 0)
    found: list[str] = json.loads(text or "[]")
    return found


def _warm(names: list[str]) -> None:
    """Import these; those that want settings first are left to each child."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        for name in names:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def _child(asked: dict[str, Any]) -> int:
    os.setsid()
    for number, (path, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            (asked["out"], os.O_WRONLY | os.O_CREAT),
            (asked["err"], os.O_WRONLY | os.O_CREAT),
        ]
    ):
        os.dup2(os.open(path, flags), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = [*asked["words"]]
    random.seed()
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _ended(child: int, seconds: float) -> int | None:
    """Its exit code, or None when it was ended for its time."""
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([watched], [], [], seconds)
    os.close(watched)
    if not ready:
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if ready else None


if __name__ == "__main__":
    main()
