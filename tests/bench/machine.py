"""What the machine is and does meanwhile, as Linux tells it. Seconds and megabytes."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = 8192
# Places in /proc/stat: user nice system idle iowait irq softirq steal.
_BUSY = (0, 1, 2, 5, 6, 7)


def busy_seconds(stat: str | None = None) -> float:
    """CPU seconds that the whole machine spent since it started, by the text of /proc/stat."""
    shown = Path("/proc/stat").read_text() if stat is None else stat
    values = [int(each) for each in shown.splitlines()[0].split()[1:9]]
    return sum(values[place] for place in _BUSY) / _TICKS


def fdatasync_us(folder: Path, count: int = 100) -> int:
    """Median microseconds of writing 8 kB and waiting until it lies on the disk."""
    probe = folder / "fdatasync.probe"
    taken = []
    file = os.open(probe, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.write(file, b"x" * _PAGE)
        os.fsync(file)
        for _ in range(count):
            os.lseek(file, 0, os.SEEK_SET)
            began = time.perf_counter()
            os.write(file, b"y" * _PAGE)
            os.fdatasync(file)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(file)
        probe.unlink()
    return round(statistics.median(taken) * 1e6)


def called(root: int, names: Iterable[str]) -> list[int]:
    """The processes of these names below a process. Raises AssertionError where one is missing."""
    wanted = set(names)
    found = {}
    for pid in tree(root):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if name in wanted:
            found[name] = pid
    assert found.keys() == wanted, f"not running: {', '.join(sorted(wanted - found.keys()))}"
    return list(found.values())


def tree(root: int) -> set[int]:
    """A process and everything that descends from it, as far as it runs."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            found = _stat(int(entry.name))
            if found is not None:
                parents[int(entry.name)] = int(found[1])
    family = {root} & parents.keys()
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        grown = bool(more)
        family |= more
    return family


def cpu_seconds(roots: Iterable[int]) -> float:
    """What these processes and their descendants spent, those that ended included."""
    total = 0
    for root in roots:
        for pid in tree(root):
            found = _stat(pid)
            if found is not None:
                total += sum(int(each) for each in found[11:15])
    return total / _TICKS


def memory_mb(roots: Iterable[int]) -> float:
    """Their memory, what several of them share counted once (PSS)."""
    total = 0
    for root in roots:
        for pid in tree(root):
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, parent, ...; None when it is gone."""
    try:
        shown = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in brackets and may hold anything.
    return shown.rpartition(")")[2].split()
