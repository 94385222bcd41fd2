"""Starts a worker that is broken in one way: `python -m tests.outages.broken NAME ...`

Only this program is patched, never the product.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import django

django.setup()

from refunds import dispatch  # noqa: E402
from refunds.ledger import Claim, Recorded, answer  # noqa: E402


def log_first() -> None:
    """What was not written to the log is not recorded."""
    record = answer.record_answer

    def record_answer(claim: Claim, *rest: Any, **more: Any) -> Recorded:
        line = f"{claim.operation_id} was answered\n".encode()
        # Past Celery's own logger, which is silent about what it cannot write.
        if os.write(2, line) < len(line):
            raise OSError(f"{claim.operation_id}: only a part of the line was written")
        return record(claim, *rest, **more)

    setattr(dispatch, "record_answer", record_answer)  # noqa: B010


MODES = {"log-first": log_first}


def main() -> None:
    MODES[sys.argv.pop(1)]()
    from celery.__main__ import main as celery

    celery()


if __name__ == "__main__":
    main()
