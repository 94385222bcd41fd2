"""Does on one database what it is told, line by line: `python -m tests.bench.hand`

Reads one JSON object a line, {"do": NAME, ...}, and answers with one line; it ends with its
standard input. Run inside a ground's environment, as the role of a client.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import django

django.setup()

from tests.bench import client, dialect, looks  # noqa: E402

THREADS = 4


def submit(
    *, first: int, count: int, by_lead: bool, orders: int, per_second: float = 0
) -> dict[str, Any]:
    """Propose operations `first` and on from four threads, as fast as they can or at a rate."""
    submitter = client.Submitter(by_lead=by_lead, orders=orders)
    numbers = iter(range(count))
    lock, failures = threading.Lock(), list[str]()
    began, cpu = time.perf_counter(), time.process_time()

    def feed() -> None:
        while True:
            with lock:
                no = next(numbers, None)
            if no is None or failures:
                return
            if per_second:
                time.sleep(max(0.0, began + no / per_second - time.perf_counter()))
            try:
                submitter.submit(first + no)
            except Exception as error:  # told to whoever measures, who then has no figure
                failures.append(repr(error)[:300])

    feeders = [threading.Thread(target=feed) for _ in range(THREADS)]
    for each in feeders:
        each.start()
    for each in feeders:
        each.join()
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "failures": failures,
    }


ACTS: dict[str, Callable[..., Any]] = {
    "migrate": client.migrate,
    "fill": client.fill,
    "submit": submit,
    "pages": looks.pages,
    "page": looks.page,
    "sweeps": looks.sweeps,
    "notices": looks.notices,
}


def main() -> None:
    dialect.register()
    for line in sys.stdin:
        told = json.loads(line)
        print(json.dumps(ACTS[told.pop("do")](**told)), flush=True)


if __name__ == "__main__":
    main()
