from __future__ import annotations

import os
from pathlib import Path

import pytest

from config import embedded
from config.embedded import EmbeddedError, Valkey, places
from config.liveness import _from_ps, command_line
from tests.config.conftest import run_python

USE_UNTIL_TOLD = """
import sys
from pathlib import Path
from config.embedded import Valkey
Valkey(Path(sys.argv[1])).ensure()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_system_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "SYSTEM_FOLDER", place / "system")


def test_another_checkout_and_another_run_dir_have_other_homes(place: Path) -> None:
    homes = {
        embedded.home_for(root, run_dir, purpose)
        for root, run_dir in (
            (place / "a", place / "a/.run"),
            (place / "b", place / "b/.run"),
            (place / "a", place / "r"),
        )
        for purpose in ("demo", "test")
    }

    assert len(homes) == 6


def test_forget_stops_the_servers_and_leaves_nothing(place: Path) -> None:
    root, run_dir = place / "a", place / "a/.run"
    (run_dir / "logs").mkdir(parents=True)
    home = embedded.home_for(root, run_dir, "demo")
    database, bell = embedded.servers_for(home, "demo")
    database.ensure("till")
    bell.ensure()
    places.release(home)

    embedded.forget(root, run_dir)

    assert not database.alive()
    assert not bell.alive()
    assert not home.parent.exists()
    assert not run_dir.exists()


def test_forget_takes_only_our_own_names_from_a_shared_folder(place: Path) -> None:
    shared = place / "shared"
    (shared / "demo").mkdir(parents=True)
    (shared / "demo.json").write_text("{}")
    (shared / "letters").mkdir()

    embedded.forget(place / "a", shared)

    assert [path.name for path in shared.iterdir()] == ["letters"]


def test_servers_in_use_by_another_program_are_neither_stopped_nor_forgotten(place: Path) -> None:
    root, run_dir = place / "a", place / "a/.run"
    home = embedded.home_for(root, run_dir, "test")
    user = run_python(USE_UNTIL_TOLD, str(home))
    assert user.stdout is not None
    assert user.stdout.readline() == "up\n"

    with pytest.raises(EmbeddedError, match="in use"):
        embedded.stop(root, run_dir, "test")
    with pytest.raises(EmbeddedError, match="in use"):
        embedded.forget(root, run_dir)
    assert Valkey(home).alive()

    user.communicate(timeout=30)
    embedded.stop(root, run_dir, "test")
    assert not Valkey(home).alive()


def test_a_killed_user_no_longer_counts(place: Path) -> None:
    root, run_dir = place / "a", place / "a/.run"
    home = embedded.home_for(root, run_dir, "test")
    user = run_python(USE_UNTIL_TOLD, str(home))
    assert user.stdout is not None
    assert user.stdout.readline() == "up\n"
    user.kill()
    user.communicate(timeout=30)

    embedded.stop(root, run_dir, "test")

    assert not Valkey(home).alive()


def test_both_ways_to_ask_about_a_pid_agree() -> None:
    own = command_line(os.getpid())

    assert own is not None
    assert "python" in own
    assert _from_ps(os.getpid()) == own
    assert _from_ps(2**22) is None
    assert command_line(2**22) is None
