"""Messages that nobody sent: doubled ones, and old ones: `python -m tests.storm.bells FILE`

Run inside the installation's environment. FILE is a JSON list of [task, id, times, age in seconds].
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from config.celery import app


def main() -> None:
    for task, operation_id, times, age_seconds in json.loads(Path(sys.argv[1]).read_text()):
        due = datetime.now(UTC) - timedelta(seconds=age_seconds)
        for _ in range(times):
            app.send_task(task, args=[operation_id], eta=due if age_seconds else None)


if __name__ == "__main__":
    main()
