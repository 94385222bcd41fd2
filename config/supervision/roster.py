"""`processes.json`: who runs, for people, for the walkthrough and for whoever kills them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "processes.json"


@dataclass(frozen=True)
class Row:
    """One program. `pid` is None between a death and the next start; `started_at` is UTC."""

    name: str
    pid: int | None
    started_at: str | None
    restarts: int


def write(run_dir: Path, *, address: str, sandbox: str, rows: list[Row]) -> None:
    """Replace the file in one step; a reader sees the old one or the new one."""
    content = {
        "supervisor": os.getpid(),
        "address": address,
        "sandbox": sandbox,
        "processes": [asdict(row) for row in rows],
    }
    scratch = run_dir / f"{FILE_NAME}.new"
    scratch.write_text(json.dumps(content, indent=1) + "\n")
    scratch.replace(run_dir / FILE_NAME)


def remove(run_dir: Path) -> None:
    """Nobody runs any more."""
    (run_dir / FILE_NAME).unlink(missing_ok=True)
