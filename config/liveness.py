"""Is what a pid file names still running, and is it what we think it is?"""

from __future__ import annotations

import subprocess
from pathlib import Path


def command_line(pid: int) -> str | None:
    """The command behind `pid`; None when there is none, or only a zombie that nobody reaped.

    In a small container the first process may reap late or never: a killed server then keeps
    its number, and `kill -0` calls it alive.
    """
    if Path("/proc/self/stat").exists():
        return _from_proc(pid)
    return _from_ps(pid)


def _from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if stat.rpartition(")")[2].split()[0] in "ZX":
        return None
    return words.replace(b"\0", b" ").decode(errors="replace").strip()


def _from_ps(pid: int) -> str | None:
    shown = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)],
        check=False,
        capture_output=True,
        text=True,
    )
    state, _, command = shown.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else command.strip()
