"""`make storm`: hundreds of refunds while processes are killed and answers get lost, for real.

Real web, workers, beat, broker, PostgreSQL and provider, at least 20 refunds in flight. Agents and
leads go on as people do: what was not heard is said again. At the end all faults stop, the rest is
awaited, and an auditor that imports nothing of ours counts in the provider's book and in the
database.

OPERATIONS (300), KILLS (100), SEED (1), BROKER (valkey, or rabbitmq), JSON=1 for a last line for
machines, BREAK= for a guard that is switched off. Ends with 0 when all is well, 1 otherwise, 2 for
unusable input, 3 when a switched-off guard was not noticed.
"""

from __future__ import annotations

import os

from tests import ended
from tests.config.rabbitmq import server_program
from tests.storm.storm import Asked, storm
from tests.storm.telling import tell

OPERATIONS_MIN, OPERATIONS_MAX = 40, 100_000
BROKERS = ("valkey", "rabbitmq")
# BREAK -> the count in which the auditor must find it.
FOUND_AS = {
    "lease-requeue": "duplicates",
    "new-key": "duplicates",
    "refused-on-500": "called_failed",
    "release-on-timeout": "money",
    "double": "duplicates",
    "lost": "lost",
    "missing-event": "missing_events",
}


def main() -> int:
    given = {
        name: os.environ.get(name) or usual
        for name, usual in (("OPERATIONS", "300"), ("KILLS", "100"), ("SEED", "1"))
    }
    broken, broker = os.environ.get("BREAK", ""), os.environ.get("BROKER") or BROKERS[0]
    whole = all(each.isascii() and each.isdecimal() for each in given.values())
    if not whole or not OPERATIONS_MIN <= int(given["OPERATIONS"]) <= OPERATIONS_MAX:
        print(f"OPERATIONS ({OPERATIONS_MIN} or more), KILLS and SEED are whole numbers.")
        return 2
    if broken not in ("", *FOUND_AS):
        print(f"BREAK is one of: {', '.join(FOUND_AS)}.")
        return 2
    if broker not in BROKERS:
        print(f"BROKER is one of: {', '.join(BROKERS)}.")
        return 2
    if broker == "rabbitmq" and server_program() is None:
        print("rabbitmq-server is not installed (apt-get install it).")
        return 2
    operations, kills, seed = (int(each) for each in given.values())
    asked = Asked(operations=operations, kills=kills, seed=seed, broker=broker, broken=broken)
    return tell(
        asked,
        storm(asked),
        found_as=FOUND_AS.get(broken, ""),
        as_json=bool(os.environ.get("JSON")),
    )


if __name__ == "__main__":
    ended.run(main)
