"""PostgreSQL and Valkey from wheels, on unix sockets, for the demo and the tests.

Needs no Django settings. A server belongs to a home folder: whichever program asks first starts
it, every later one finds it, and after a crash the next one recovers it.
"""

from config.embedded.places import (
    EmbeddedError,
    forget_files,
    home_for,
    in_use,
    run_dir_from_environment,
)
from config.embedded.postgres import Postgres
from config.embedded.valkey import Valkey

__all__ = [
    "PURPOSES",
    "EmbeddedError",
    "Postgres",
    "Valkey",
    "forget",
    "home_for",
    "run_dir_from_environment",
    "servers_for",
    "stop",
]

from pathlib import Path

PURPOSES = ("demo", "test")


def servers_for(home: Path, purpose: str) -> tuple[Postgres, Valkey]:
    """Both servers of a home; what tests write may be lost, what the demo writes may not."""
    return Postgres(home, durable=purpose != "test"), Valkey(home)


def stop(root: Path, run_dir: Path, purpose: str) -> None:
    """Stop the servers of one purpose. Raises EmbeddedError while another program uses them."""
    home = home_for(root, run_dir, purpose)
    if in_use(home):
        raise EmbeddedError(
            f"The servers under {home} are in use by a running program. Stop that one first "
            "(Ctrl-C in the terminal of `make demo`, or the end of the test run)."
        )
    for server in servers_for(home, purpose):
        server.stop()


def forget(root: Path, run_dir: Path) -> None:
    """Stop the servers of the demo and the tests and remove everything they and we stored."""
    for purpose in PURPOSES:
        stop(root, run_dir, purpose)
    forget_files(root, run_dir)
