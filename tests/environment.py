"""Loaded before anything else: the environment of the tests, and their servers.

A pytest plugin named in `addopts`, since pytest-django imports the settings before any conftest.
"""

from __future__ import annotations

import os
import socket


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


os.environ["AFTERSEND_ENV"] = "test"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Each pytest process (an xdist worker too) talks to a sandbox of its own.
os.environ["AFTERSEND_SANDBOX_URL"] = f"http://127.0.0.1:{_free_port()}"
os.environ["AFTERSEND_LIMITS"] = (
    '{"send_delay_seconds": 0, "call_total_seconds": 3, "not_sent_backoff_seconds": [0, 0, 1, 1]}'
)


def pytest_configure() -> None:
    from config.servers import ensure_servers

    ensure_servers()
