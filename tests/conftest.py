"""Shared fixtures: the cast, the sandbox as a real process, and a flush that passes the guards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management.commands import flush
from django.db.backends.postgresql.operations import DatabaseOperations

from refunds import doorbell, policies, witness
from refunds.providers import registry
from tests import emptying
from tests.cast import Cast, assemble
from tests.provider_process import SandboxProcess


@pytest.fixture(autouse=True, scope="session")
def _flush_past_the_guards() -> Iterator[None]:
    """After a test that committed (see emptying.py)."""
    patch = pytest.MonkeyPatch()

    def rows_of(
        self: DatabaseOperations, style: object, tables: Iterable[str], **_: object
    ) -> list[str]:
        return emptying.statements(tables)

    patch.setattr(DatabaseOperations, "sql_flush", rows_of)
    patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    yield
    cache.clear()
    policies.current.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _own_witness_of_this_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Several test processes have a database each; what one sent is not lost to another."""
    settings.WITNESS_DIR = tmp_path_factory.mktemp("witness")


@pytest.fixture(autouse=True)
def _fresh_witness() -> Iterator[None]:
    """A test begins with an empty database, which lost nothing."""
    yield
    witness.forget()


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
