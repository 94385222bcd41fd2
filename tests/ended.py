"""How a program of the proofs ends: with its own word, or because somebody stopped it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn


def run(main: Callable[[], int]) -> NoReturn:
    """Run it and exit with what it returns; 130 after Ctrl-C, once it has cleaned up."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped; nothing of it is left running.")
        sys.exit(130)
