"""Where the embedded servers of one checkout live, and who uses that place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SYSTEM_FOLDER = Path("/var/lib/aftersend")
SOCKET_PATH_BYTES_MAX = 103  # sockaddr_un: 104 on macOS, 108 on Linux, the end mark included
OURS_IN_A_RUN_DIR = (
    "demo",
    "test",
    "logs",
    "demo.json",
    "demo.lock",
    "static",
    "witness",
    "processes.json",
    "supervisor.lock",
    "beat-schedule*",
    "junit.xml",
)

_held: dict[Path, int] = {}  # bare descriptors: they are meant to stay open to the end


class EmbeddedError(RuntimeError):
    """An embedded server cannot be had; the text says what to do about it."""


def run_dir_from_environment(root: Path) -> Path:
    """AFTERSEND_RUN_DIR, or `.run`; a relative one counts from the checkout."""
    return (root / os.environ.get("AFTERSEND_RUN_DIR", ".run")).resolve()


def home_for(root: Path, run_dir: Path, purpose: str) -> Path:
    """Where the servers of `purpose` ("demo" or "test") live. Nothing is created.

    PostgreSQL refuses to run as root, and the user it drops to cannot be expected to reach a
    checkout (root's home is closed to everybody). So root's servers live under /var/lib.
    """
    if os.geteuid() != 0:
        return run_dir.resolve() / purpose
    return _system_folder(root, run_dir) / purpose


def _system_folder(root: Path, run_dir: Path) -> Path:
    root, run_dir = root.resolve(), run_dir.resolve()
    # Another run dir means other servers, for root as for everybody else.
    parts = [str(root)] if run_dir == root / ".run" else [str(root), str(run_dir)]
    return SYSTEM_FOLDER / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def checked_socket(path: Path) -> None:
    """Raises EmbeddedError where the system could not bind a socket to it."""
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_BYTES_MAX:
        raise EmbeddedError(
            f"The socket path {path} has {length} bytes; the system allows "
            f"{SOCKET_PATH_BYTES_MAX}. Set AFTERSEND_RUN_DIR to a shorter folder, for example "
            f"AFTERSEND_RUN_DIR=/tmp/aftersend-{os.geteuid()}."
        )


def make_folders(path: Path) -> None:
    """Create what is missing. A folder that was there keeps its permissions."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            folder.chmod(0o755)  # whatever root's umask: the user we drop to must get through


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One program at a time starts, creates or stops in `folder`; the others wait."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def hold(home: Path) -> None:
    """Mark the home as used until this program ends, however it ends."""
    if home not in _held:
        mark = os.open(home / "in-use", os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(mark, fcntl.LOCK_SH)
        _held[home] = mark


def release(home: Path) -> None:
    """Take the mark of this program away again."""
    if home in _held:
        os.close(_held.pop(home))


def in_use(home: Path) -> bool:
    """Whether any program holds the home, this one included."""
    if not (home / "in-use").exists():
        return False
    with (home / "in-use").open("a") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def forget_files(root: Path, run_dir: Path) -> None:
    """Remove a run dir and, as root, the folder under /var/lib; the servers must be stopped.

    Outside of the checkout only names that are ours go: somebody may have said /tmp.
    """
    root, run_dir = root.resolve(), run_dir.resolve()
    if run_dir.is_relative_to(root) and run_dir != root:
        doomed = [run_dir]
    else:
        doomed = [found for name in OURS_IN_A_RUN_DIR for found in run_dir.glob(name)]
    if os.geteuid() == 0:
        doomed.append(_system_folder(root, run_dir))
    for path in doomed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
