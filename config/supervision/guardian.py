"""Ends what a killed supervisor leaves behind: its children's groups and the embedded servers.

Standard library only, in a session of its own. Its standard input is a pipe whose other end only
the supervisor holds; however that one ends, the pipe ends too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from config.liveness import command_line
from config.supervision import roster

MARK_VARIABLE = "AFTERSEND_SUPERVISION"
GROUP_STEPS = ((signal.SIGTERM, 2.5), (signal.SIGKILL, 1.5))
# To PostgreSQL: a fast shutdown, an immediate one, none. Valkey takes the first for "leave now".
SERVER_STEPS = ((signal.SIGINT, 2.5), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 1.0))
LOOK_SECONDS = 0.1


def main(token: str, run_dir: Path, servers: list[tuple[Path, str]]) -> None:
    """`servers`: pid file and a word that the command line behind the pid must have."""
    while os.read(sys.stdin.fileno(), 4096):
        continue
    groups = lambda: living_groups(token, run_dir)  # noqa: E731
    _end(groups, GROUP_STEPS, _signal_group)
    _end(lambda: living_servers(servers), SERVER_STEPS, os.kill)
    roster.remove(run_dir)


def _end(
    living: Callable[[], Iterable[int]],
    steps: Iterable[tuple[signal.Signals, float]],
    send: Callable[[int, int], None],
) -> None:
    for sent, seconds in steps:
        told: set[int] = set()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            left = set(living())
            if not left:
                return
            for number in left - told:  # the supervisor may have been starting one as it died
                try:
                    send(number, sent)
                except ProcessLookupError:
                    continue
            told |= left
            time.sleep(LOOK_SECONDS)


def _signal_group(leader: int, sent: int) -> None:
    if sent == signal.SIGKILL:
        os.killpg(leader, sent)
    else:
        os.kill(leader, sent)  # a Celery pool is for its parent to end


def living_groups(token: str, run_dir: Path) -> set[int]:
    """Process groups in which somebody carries our token in his environment."""
    if not Path("/proc/self/environ").exists():
        return _listed_groups(run_dir)
    mark = f"{MARK_VARIABLE}={token}".encode()
    groups = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                groups.add(os.getpgid(int(folder.name)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # ended meanwhile, or somebody else's
    return groups


def _listed_groups(run_dir: Path) -> set[int]:
    try:
        rows = json.loads((run_dir / roster.FILE_NAME).read_text())["processes"]
    except FileNotFoundError:
        return set()
    listed = {row["pid"] for row in rows if row["name"] != "guardian" and row["pid"]}
    return {pid for pid in listed if command_line(pid) is not None}


def living_servers(servers: Iterable[tuple[Path, str]]) -> set[int]:
    """The servers behind the pid files, as far as they are the ones we mean."""
    found = set()
    for pid_file, word in servers:
        try:
            number = int(pid_file.read_text().split()[0])
        except (FileNotFoundError, IndexError):
            continue
        if word in (command_line(number) or ""):
            found.add(number)
    return found


if __name__ == "__main__":
    pairs = sys.argv[3:]
    main(
        sys.argv[1],
        Path(sys.argv[2]),
        [(Path(file), word) for file, word in zip(pairs[::2], pairs[1::2], strict=True)],
    )
