"""Fixtures of the public bug rows: other programs, time that passes, limits of one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from refunds import doorbell, witness
from refunds.domain.limits import Limits
from refunds.providers import registry
from tests.bugs.programs import Program

Change = Callable[..., Limits]
Accounts = Callable[..., None]


@pytest.fixture(autouse=True)
def _own_witness(tmp_path: Path, settings: Settings) -> Iterator[None]:
    """Sends of other tests were in a database that is empty now; that would look like a loss."""
    settings.WITNESS_DIR = tmp_path / "witness"
    yield
    witness._identity_of_process.clear()


@pytest.fixture
def limits(settings: Settings) -> Change:
    """Change the engine's constants for one test."""

    def change(**values: Any) -> Limits:
        changed: Limits = replace(settings.LIMITS, **values)
        settings.LIMITS = changed
        return changed

    return change


@pytest.fixture
def accounts(settings: Settings, tmp_path: Path) -> Iterator[Accounts]:
    """Say which accounts there are besides the sandbox's own, and the credential of each."""

    def say(tables: dict[str, dict[str, str]], *, key: str | None) -> None:
        lines = [
            f"[{name}]\n" + "".join(f'{field} = "{value}"\n' for field, value in table.items())
            for name, table in tables.items()
        ]
        settings.PROVIDERS_FILE = tmp_path / "providers.toml"
        settings.PROVIDERS_FILE.write_text("\n".join(lines))
        settings.PROVIDER_KEYS = dict.fromkeys(tables, key) if key else {}
        registry.accounts.cache_clear()

    yield say
    registry.accounts.cache_clear()


@pytest.fixture
def run_schedule(rung: list[tuple[str, str]]) -> Callable[[], None]:
    """Run each entry of the schedule once, and then every task that was rung for."""
    from config.celery import app  # connects a bell to the broker, which `rung` takes off again

    doorbell.connect(lambda task, operation_id, after: rung.append((task, operation_id)))
    app.loader.import_default_modules()

    def run() -> None:
        for entry in app.conf.beat_schedule.values():
            app.tasks[entry["task"]]()
        while rung:
            task, operation_id = rung.pop(0)
            app.tasks[task](operation_id)

    return run


@pytest.fixture(scope="session")
def _spare_programs(django_db_setup: None) -> Iterator[list[Program]]:
    """Starting one takes seconds; those that a test leaves idle serve the next."""
    spare: list[Program] = []
    yield spare
    for each in spare:
        each.end()


@pytest.fixture
def program(
    db: None, _spare_programs: list[Program], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """A second program on the database of this test."""
    with _borrowed(_spare_programs, 1, tmp_path_factory) as [one]:
        yield one


@pytest.fixture
def two_programs(
    db: None, _spare_programs: list[Program], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Program]]:
    """Two further programs on the database of this test."""
    with _borrowed(_spare_programs, 2, tmp_path_factory) as both:
        yield both


@contextmanager
def _borrowed(
    spare: list[Program], number: int, folders: pytest.TempPathFactory
) -> Iterator[list[Program]]:
    missing = [Program(folders.mktemp("run")) for _ in range(number - len(spare))]
    taken = [*missing, *(spare.pop() for _ in range(number - len(missing)))]
    try:
        for each in missing:
            each.until_ready()
        yield taken
    finally:
        for each in taken:
            if each.idle:
                each.forget()
                spare.append(each)
            else:
                each.end()
