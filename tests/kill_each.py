"""`make kill-each`: with a running demo, kill each of its programs in turn while refunds go on.

For every row of processes.json, and each program under the workers' roof: SIGKILL; meanwhile somebody approves a refund; a new pid within
15 s; the refund in the provider's book exactly once within 60 s. At last the supervisor itself,
after which nothing may live for longer than 10 s. Prints one JSON object; exit 1 when not ok, 2
when no demo runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from config.embedded import run_dir_from_environment
from tests.drive_console import approve_one_refund

ROOT = Path(__file__).resolve().parents[1]
BACK_SECONDS_MAX = 15
BOOKED_SECONDS_MAX = 60
GONE_SECONDS_MAX = 10
LOOK_SECONDS = 0.1
_UNDER_ONE_ROOF = ("money", "lookups", "beat")  # programs of the row `workers`


@dataclass(frozen=True)
class Kill:
    """What came of one SIGKILL. `trouble` is a sentence, empty when all went well."""

    name: str
    pid: int
    new_pid: int | None
    back_seconds: float | None
    operation_id: str | None
    refunds_in_book: int
    trouble: str

    @property
    def ok(self) -> bool:
        return self.new_pid is not None and self.refunds_in_book == 1 and not self.trouble


class Demo:
    """The running demo, as its files and its provider's book tell of it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        first = self.roster()
        self.address: str = first["address"]
        self.supervisor: int = first["supervisor"]
        self.names: list[str] = [row["name"] for row in first["processes"]] + list(_UNDER_ONE_ROOF)
        token = json.loads((run_dir / "demo.json").read_text())["sandbox_token"]
        self._book = httpx.Client(base_url=first["sandbox"], headers={"X-Control-Token": token})

    def roster(self) -> dict[str, Any]:
        listed: dict[str, Any] = json.loads((self._run_dir / "processes.json").read_text())
        return listed

    def pid(self, name: str) -> int | None:
        rows = {row["name"]: row["pid"] for row in self.roster()["processes"]}
        if name not in _UNDER_ONE_ROOF:
            pid: int | None = rows[name]
            return pid
        children = (
            pid
            for pid, (comm, parent, _) in _everybody().items()
            if parent == rows["workers"] and comm == name
        )
        return next(children, None)

    def refunds(self, operation_id: str) -> int:
        """How often the provider paid it; 0 while the provider cannot be asked."""
        try:
            book = self._book.get("/_control/book").raise_for_status().json()
        except httpx.TransportError:
            return 0
        return sum(
            refund["executions"]
            for payment in book["payments"]
            for refund in payment["refunds"]
            if refund["aftersend_operation"] == operation_id
        )


def main() -> int:
    try:
        demo = Demo(run_dir_from_environment(ROOT))
    except FileNotFoundError:
        print("No demo runs in this checkout. Start one with `make demo`.", file=sys.stderr)
        return 2
    kills = [_kill_one(demo, name) for name in demo.names]
    # A second payment may come late: what was one refund then must still be one now.
    kills = [replace(kill, refunds_in_book=_count(demo, kill)) for kill in kills]
    left = _kill_supervisor(demo)
    ok = all(kill.ok for kill in kills) and not left
    told = [asdict(kill) | {"ok": kill.ok} for kill in kills]
    print(json.dumps({"kills": told, "left_after_supervisor": left, "ok": ok}))
    return 0 if ok else 1


def _kill_one(demo: Demo, name: str) -> Kill:
    old = _wait(lambda: demo.pid(name), BACK_SECONDS_MAX)
    if old is None:
        return Kill(name, 0, None, None, None, 0, "was not running")
    print(f"killing {name}, pid {old}", file=sys.stderr)
    with ThreadPoolExecutor(1) as person:
        began = time.monotonic()
        os.kill(old, signal.SIGKILL)
        approved = person.submit(approve_one_refund, demo.address)
        new = _wait(lambda: _other(demo.pid(name), old), BACK_SECONDS_MAX)
        back_seconds = round(time.monotonic() - began, 2) if new else None
        error = approved.exception()
    if error is not None:
        trouble = f"the approval failed: {type(error).__name__}: {error}"
        return Kill(name, old, new, back_seconds, None, 0, trouble)
    operation_id = approved.result()
    left_seconds = BOOKED_SECONDS_MAX - (time.monotonic() - began)
    booked = _wait(lambda: demo.refunds(operation_id) or None, left_seconds)
    trouble = "" if booked else f"not in the book within {BOOKED_SECONDS_MAX} s"
    return Kill(name, old, new, back_seconds, operation_id, booked or 0, trouble)


def _count(demo: Demo, kill: Kill) -> int:
    return demo.refunds(kill.operation_id) if kill.operation_id else 0


def _kill_supervisor(demo: Demo) -> list[str]:
    """The names of what still lives when the time is up."""
    family = _descendants({row["pid"] for row in demo.roster()["processes"]})
    family[demo.supervisor] = "supervisor"
    os.kill(demo.supervisor, signal.SIGKILL)
    _wait(lambda: not _living(family) or None, GONE_SECONDS_MAX)
    return [family[pid] for pid in _living(family)]


def _descendants(roots: set[int]) -> dict[int, str]:
    """Every living process below the roots, and they themselves, with its name."""
    parents = {pid: parent for pid, (_, parent, _) in _everybody().items()}
    found = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: name for pid, (name, _, _) in _everybody().items() if pid in found}


def _living(family: dict[int, str]) -> list[int]:
    now = _everybody()
    return [pid for pid in family if pid in now and now[pid][2] not in "ZX"]


def _everybody() -> dict[int, tuple[str, int, str]]:
    """pid -> (name, parent, state) of every process of this machine."""
    everybody = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent = rest.split()[:2]
        everybody[int(folder.name)] = (name.partition("(")[2], int(parent), state)
    return everybody


def _other(pid: int | None, old: int) -> int | None:
    return pid if pid != old else None


def _wait[T](found: Callable[[], T | None], seconds: float) -> T | None:
    """What `found` gives as soon as it gives something; None when the time is up."""
    deadline = time.monotonic() + seconds
    while (value := found()) is None and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return value


if __name__ == "__main__":
    sys.exit(main())
