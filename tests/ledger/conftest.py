"""Processes of our own, and a witness folder per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.actors import Troupe


@pytest.fixture(autouse=True)
def _own_witness(settings: Any, tmp_path: Path) -> None:
    settings.WITNESS_DIR = tmp_path / "witness"


@pytest.fixture(scope="session")
def _troupe(django_db_setup: None, django_db_blocker: Any) -> Iterator[Troupe]:
    troupe = Troupe()
    yield troupe
    troupe.end()


@pytest.fixture
def troupe(_troupe: Troupe, db: None) -> Iterator[Troupe]:
    """Actors on call; whoever still stands at the end is killed."""
    yield _troupe
    _troupe.dismiss()
