"""One committed ledger per module: nothing that these tests do may change it, so once is enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from tests.ledger.guards.guarded import Guarded, built
from tests.provider_process import SandboxProcess


@pytest.fixture(scope="module")
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database without a transaction around each test: guards speak at a real COMMIT."""
    with django_db_blocker.unblock():
        yield
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture(scope="module")
def guarded(db: None, sandbox_process: SandboxProcess) -> Guarded:
    return built(sandbox_process)
