"""Secrets of a demo: random, made once per data folder, kept in .run/demo.json (mode 600)."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from pathlib import Path

_NAMES = {
    "secret_key": lambda: secrets.token_urlsafe(48),
    "key_pepper": lambda: secrets.token_urlsafe(48),
    "password": lambda: secrets.token_urlsafe(9),
    "sandbox_token": lambda: secrets.token_urlsafe(18),
}


def kept_secrets(run_dir: Path) -> dict[str, str]:
    """The kept values, with those that are missing made and stored; safe from many processes."""
    run_dir.mkdir(parents=True, exist_ok=True)
    path = run_dir / "demo.json"
    with open(run_dir / "demo.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        missing = [name for name in _NAMES if name not in kept]
        if missing:
            kept |= {name: _NAMES[name]() for name in missing}
            remember(run_dir, kept)
    return kept


def remember(run_dir: Path, kept: dict[str, str]) -> None:
    """Replace demo.json in one step, readable by its owner only."""
    scratch = run_dir / f"demo.json.{os.getpid()}"
    with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(kept, out, indent=1)
    scratch.replace(run_dir / "demo.json")
