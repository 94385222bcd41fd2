"""`python -m config.embedded status|stop|forget`: the embedded servers of this checkout."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from config import embedded

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    parser.add_argument("act", choices=["status", "stop", "forget"])
    parser.add_argument("purpose", nargs="*", default=embedded.PURPOSES, help="demo, test")
    asked = parser.parse_args(arguments)
    run_dir = embedded.run_dir_from_environment(ROOT)
    try:
        if asked.act == "forget":
            embedded.forget(ROOT, run_dir)
        for purpose in asked.purpose if asked.act == "stop" else ():
            embedded.stop(ROOT, run_dir, purpose)
    except embedded.EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    for purpose in asked.purpose:
        print(_status(run_dir, purpose))
    return 0


def _status(run_dir: Path, purpose: str) -> str:
    home = embedded.home_for(ROOT, run_dir, purpose)
    if not home.exists():
        return f"{purpose}: nothing under {home}"
    states = [
        f"{type(server).__name__} {f'pid {server.pid()}' if server.pid() else 'not running'}"
        for server in embedded.servers_for(home, purpose)
    ]
    return f"{purpose}: {home}: {', '.join(states)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
