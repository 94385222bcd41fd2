"""Shared fixtures: the cast, the sandbox as a real process, and a flush that passes the guards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from django.db.backends.postgresql.operations import DatabaseOperations

from refunds import doorbell, policies
from refunds.providers import registry
from tests.cast import Cast, assemble
from tests.provider_process import SandboxProcess


@pytest.fixture(autouse=True, scope="session")
def _flush_past_the_guards() -> Iterator[None]:
    """Django's flush is a TRUNCATE, which the guards refuse; a superuser may set them aside."""
    original: Any = DatabaseOperations.execute_sql_flush

    def flush(self: DatabaseOperations, sql_list: Iterable[str]) -> None:
        original(
            self,
            [
                "SET session_replication_role = replica;",
                *sql_list,
                "SET session_replication_role = DEFAULT;",
            ],
        )

    setattr(DatabaseOperations, "execute_sql_flush", flush)  # noqa: B010 - a method of Django
    yield
    setattr(DatabaseOperations, "execute_sql_flush", original)  # noqa: B010


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    yield
    cache.clear()
    policies.current.cache_clear()


@pytest.fixture
def cast(db: None) -> Cast:
    """Everybody, stored (see tests/cast.py)."""
    return assemble()


@pytest.fixture
def rung() -> Iterator[list[tuple[str, str]]]:
    """The bells that rang after commits, as (task, operation id), instead of a broker."""
    heard: list[tuple[str, str]] = []
    doorbell.connect(lambda task, operation_id, after: heard.append((task, operation_id)))
    yield heard
    doorbell.connect(lambda task, operation_id, after: None)


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[SandboxProcess]:
    """One sandbox per test session on the port that the settings point at."""
    port = urlsplit(os.environ["AFTERSEND_SANDBOX_URL"]).port
    assert port is not None
    process = SandboxProcess()
    process.start(port=port)
    registry.accounts.cache_clear()
    yield process
    process.stop()


@pytest.fixture
def provider(sandbox_process: SandboxProcess) -> SandboxProcess:
    """The sandbox with an empty book, no faults and its clock at now."""
    sandbox_process.reset()
    return sandbox_process
