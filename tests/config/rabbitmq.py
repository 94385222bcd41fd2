"""A real RabbitMQ of our own: loopback only, free ports, everything in one folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kombu
import kombu.exceptions

from tests.config.conftest import until

DEBIAN_FOLDER = "/usr/lib/rabbitmq/bin"  # its wrapper on PATH lets only root and rabbitmq start it
START_SECONDS_MAX = 120  # on a machine that does other things, too


def server_program() -> str | None:
    """The path of rabbitmq-server; None where it is not installed."""
    return shutil.which("rabbitmq-server", path=f"{DEBIAN_FOLDER}:{os.environ['PATH']}")


class RabbitMQ:
    """One node, on the same ports whenever it is started; `environment` is added to its own."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self._folder = folder
        self.port, distribution_port, self._names_port = _free_ports(3)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._environment = (
            os.environ
            | (environment or {})
            | {
                "HOME": str(folder),
                "ERL_EPMD_ADDRESS": "127.0.0.1",
                "ERL_EPMD_PORT": str(self._names_port),
                "RABBITMQ_NODENAME": "aftersend-test@localhost",
                "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODE_PORT": str(self.port),
                "RABBITMQ_DIST_PORT": str(distribution_port),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                    "-kernel inet_dist_use_interface {127,0,0,1}"
                ),
                "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
                "RABBITMQ_CONFIG_FILE": str(folder / "none"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
                "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
                "RABBITMQ_LOG_BASE": str(folder),
                "RABBITMQ_PID_FILE": str(folder / "pid"),
            }
        )
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Until it answers. Its name service is started here too, so that it ends with it."""
        program = server_program()
        assert program is not None
        names = ["epmd", "-address", "127.0.0.1", "-port", str(self._names_port)]
        with (self._folder / "output.log").open("a") as log:
            for command in (names, [program]):
                self._running.append(
                    subprocess.Popen(
                        command,
                        env=self._environment,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        cwd=self._folder,
                    )
                )
        until(lambda: _answers(self.url), seconds=START_SECONDS_MAX)

    def kill(self) -> None:
        """SIGKILL; what it stored stays. Nothing running: no error."""
        for started in reversed(self._running):
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        self._running.clear()

    def forget(self) -> None:
        """Kill it with everything that it holds; it is to be started again."""
        self.kill()
        shutil.rmtree(self._folder / "mnesia")


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """The broker's URL, while it runs."""
    broker = RabbitMQ(folder)
    try:
        broker.start()
        yield broker.url
    finally:
        broker.kill()


def _answers(url: str) -> bool:
    try:
        with kombu.Connection(url, connect_timeout=2) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0)
    except (kombu.exceptions.OperationalError, OSError):
        return False
    return True


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [bound.getsockname()[1] for bound in sockets]
    for bound in sockets:
        bound.close()
    return ports
