"""The installation that the storm goes over: two groups of senders, one of processes and one of
threads, and fault points everywhere.

Its programs reach PostgreSQL through a carrier of ours that cuts lines at COMMIT; the storm's own
questions go straight to it. Each group of senders lives in a network of its own where the machine
gives one. The broker is Valkey, or RabbitMQ with quorum queues and confirmed messages.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from config.embedded.postgres import SOCKET_NAME
from config.supervision.guardian import MARK_VARIABLE
from tests.bad_agent.__main__ import POLICY_CHANGES
from tests.config.rabbitmq import RabbitMQ
from tests.storm.apart import networks
from tests.storm.carrier import Carrier
from tests.storm.points import ORDERS_VARIABLE, lay_out
from tests.storm.program import CALM, CLOCKS_VARIABLE, NO_NETWORK
from tests.storm.standby import Followed, Standby
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
    """`broken` names a guard that its workers run without; `broker` is `valkey` or `rabbitmq`."""

    def __init__(self, *, broken: str = "", broker: str = "valkey") -> None:
        super().__init__(
            broken=broken,
            policy_changes=POLICY,
            limits=LIMITS,
            web_module="tests.storm.web",
        )
        self.orders = self.run_dir / "orders"
        lay_out(self.orders)
        self.server = Followed(self._database.home)
        self._database = self.server
        self.standby = Standby(self.server)
        self._standbys = [self.standby]
        self.carrier = Carrier(self._database.socket_dir / SOCKET_NAME, self.orders)
        self.carrier.start()
        self._rabbit: RabbitMQ | None = None
        if broker == "rabbitmq":
            folder = self.run_dir / "rabbitmq"
            folder.mkdir()
            self._rabbit = RabbitMQ(folder, {MARK_VARIABLE: self._token})
        self.networks = networks(SENDERS)

    def crash_database(self) -> None:
        """Immediate shutdown, as `pg_ctl stop -m immediate` does it, then recovery."""
        self.server.stop_at_once()
        self.server.ensure(DATABASE)

    def forget_broker(self) -> None:
        """Kill it with everything it holds, and start an empty one."""
        if self._rabbit is not None:
            self._rabbit.forget()
            self._rabbit.start()
            return
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
        money = [*common, "-Q", "money", "-c", str(SENDERS_EACH), "-P"]
        program = ["-m", "tests.storm.program", self._broken or "none"]
        first, other = (self._network(name) for name in SENDERS)
        return {
            "web": usual["web"],
            "worker-money": [*program, "usual", first, *money, "prefork", "-n", "money@%h"],
            "worker-money-other": [*program, "other", other, *money, "threads", "-n", "other@%h"],
            "worker-lookups": [
                *(*program, "usual", NO_NETWORK, *common, "-Q", "lookups", "-n", "look@%h"),
                *("-P", "threads", "-c", "6"),
            ],
            "beat": usual["beat"],
        }

    def _servers(self) -> list[Callable[[], object]]:
        rabbit = [self._rabbit.start] if self._rabbit is not None else []
        return [*super()._servers(), *rabbit]

    def _network(self, name: str) -> str:
        apart = self.networks.get(name)
        return apart.path if apart is not None else NO_NETWORK

    def _environment(self) -> dict[str, str]:
        carried = f"postgresql://postgres@127.0.0.1:{self.carrier.port}/{quote(DATABASE)}"
        self._open_ports()
        return (
            super()._environment()
            | {
                "DATABASE_URL": f"{carried}?sslmode=disable&gssencmode=disable",
                ORDERS_VARIABLE: str(self.orders),
                CLOCKS_VARIABLE: str(self.run_dir),
            }
            | ({"CELERY_BROKER_URL": self._rabbit.url} if self._rabbit is not None else {})
        )

    def _open_ports(self) -> None:
        """What the senders' networks reach of the one outside: database, provider, broker."""
        for apart in self.networks.values():
            self.carrier.open_at(apart.listen(self.carrier.port))
            self.carrier.pass_on(apart.listen(self.provider.port), self.provider.port)
            if self._rabbit is not None:
                self.carrier.pass_on(apart.listen(self._rabbit.port), self._rabbit.port)

    def _end(self) -> None:
        super()._end()
        if self._rabbit is not None:
            self._rabbit.kill()
        self.carrier.stop()
        for apart in self.networks.values():
            apart.end()
