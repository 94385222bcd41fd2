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


def server_program() -> str | None:
    """The path of rabbitmq-server; None where it is not installed."""
    return shutil.which("rabbitmq-server", path=f"{DEBIAN_FOLDER}:{os.environ['PATH']}")


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """The broker's URL, while it runs."""
    program = server_program()
    assert program is not None
    port, distribution_port, names_port = _free_ports(3)
    environment = os.environ | {
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(names_port),
        "RABBITMQ_NODENAME": "aftersend-test@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    url = f"amqp://guest:guest@127.0.0.1:{port}//"
    # Its name service is started here and not by the server, so that it ends with the test.
    commands = [["epmd", "-address", "127.0.0.1", "-port", str(names_port)], [program]]
    with (folder / "output.log").open("w") as log:
        running = [
            subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder
            )
            for command in commands
        ]
    try:
        until(lambda: _answers(url), seconds=60)
        yield url
    finally:
        for started in reversed(running):
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


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
