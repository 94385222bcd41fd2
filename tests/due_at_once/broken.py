"""Starts a worker that keeps no pace: `python -m tests.due_at_once.broken pacing ...`

Only this program is patched, never the product: whatever is due is asked at once.
"""

from __future__ import annotations

import sys

import django

django.setup()

from reconciliation import pacing, reconciler  # noqa: E402


def no_pacing() -> None:
    """A provider can take what we have."""
    for module in (pacing, reconciler):
        module.must_wait = lambda operation: False  # type: ignore[attr-defined]
    pacing._room = lambda name, batch_max: batch_max


MODES = {"pacing": no_pacing}


def main() -> None:
    MODES[sys.argv.pop(1)]()
    from celery.__main__ import main as celery

    celery()


if __name__ == "__main__":
    main()
