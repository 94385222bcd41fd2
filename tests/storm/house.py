"""The installation that the storm goes over: two groups of senders, and fault points everywhere.

Its programs reach PostgreSQL through a carrier of ours that cuts lines at COMMIT; the storm's own
questions go straight to it.
"""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any
from urllib.parse import quote

from config.embedded.postgres import SOCKET_NAME
from tests.bad_agent.__main__ import POLICY_CHANGES
from tests.storm.carrier import Carrier
from tests.storm.points import ORDERS_VARIABLE, lay_out
from tests.storm.program import CALM, CLOCKS_VARIABLE
from tests.walkthrough.installation import DATABASE, Installation
from tests.walkthrough.programs import wait_until

SENDERS_EACH = 10
SENDERS = ("worker-money", "worker-money-other")
# Delays only, on top of the walkthrough's: no rule is shortened away.
LIMITS: dict[str, Any] = {
    "calls_per_minute_max": 1_000_000,
    "lookup_with_case_seconds": 3,
    "approval_left_seconds": 30,
    "account_sweep_seconds": 30,
}
POLICY = POLICY_CHANGES | {
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 60000\n",
}


class House(Installation):
    """`broken` names a guard that its workers run without."""

    def __init__(self, *, broken: str = "") -> None:
        super().__init__(
            broken=broken,
            policy_changes=POLICY,
            limits=LIMITS,
            web_module="tests.storm.web",
        )
        self.orders = self.run_dir / "orders"
        lay_out(self.orders)
        self.carrier = Carrier(self._database.socket_dir / SOCKET_NAME, self.orders)
        self.carrier.start()

    def crash_database(self) -> None:
        """Immediate shutdown, as `pg_ctl stop -m immediate` does it, then recovery."""
        number = self._database.pid()
        if number is not None:
            os.kill(number, signal.SIGQUIT)
            wait_until(lambda: self._database.pid() is None, seconds=60, what="the database's end")
        self._database.ensure(DATABASE)

    def forget_broker(self) -> None:
        """Kill it with everything it holds, and start an empty one."""
        number = self._bell.pid()
        if number is not None:
            os.kill(number, signal.SIGKILL)
            wait_until(lambda: self._bell.pid() is None, what="the end of the broker")
        shutil.rmtree(self._bell.folder / "appendonlydir", ignore_errors=True)
        self._bell.ensure()

    def calm(self) -> None:
        """Programs that start from now on have the right time."""
        (self.run_dir / CALM).touch()

    def _commands(self) -> dict[str, list[str]]:
        usual = super()._commands()
        common = ["-A", "config.celery", "worker", "--without-gossip", "--without-mingle"]
        money = [*common, "-Q", "money", "-P", "prefork", "-c", str(SENDERS_EACH)]
        program = ["-m", "tests.storm.program", self._broken or "none"]
        return {
            "web": usual["web"],
            "worker-money": [*program, "usual", *money, "-n", "money@%h"],
            "worker-money-other": [*program, "other", *money, "-n", "other@%h"],
            "worker-lookups": [
                *(*program, "usual", *common, "-Q", "lookups", "-n", "look@%h"),
                *("-P", "threads", "-c", "6"),
            ],
            "beat": usual["beat"],
        }

    def _environment(self) -> dict[str, str]:
        carried = f"postgresql://postgres@127.0.0.1:{self.carrier.port}/{quote(DATABASE)}"
        return super()._environment() | {
            "DATABASE_URL": f"{carried}?sslmode=disable&gssencmode=disable",
            ORDERS_VARIABLE: str(self.orders),
            CLOCKS_VARIABLE: str(self.run_dir),
        }

    def _end(self) -> None:
        super()._end()
        self.carrier.stop()
