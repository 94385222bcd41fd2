"""What the storm puts around the programs: a network of their own, and a standby that lacks the end."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.backup import Backup
from tests.storm.apart import Apart, networks
from tests.storm.carrier import Carrier
from tests.storm.standby import Followed, Standby

SILENCE_SECONDS, BACK_SECONDS_MAX = 1, 20
IDENTITY = "SELECT timeline_id FROM pg_control_checkpoint()"


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = networks(("one",))
    if not made:
        pytest.skip("this machine gives no networks away (Linux, as root)")
    yield made["one"]
    made["one"].end()


@pytest.fixture
def carrier(tmp_path: Path) -> Iterator[Carrier]:
    made = Carrier(tmp_path / "nowhere", tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path that PostgreSQL's own user may enter, too."""
    folder = Path(tempfile.mkdtemp(prefix="as-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _echo(listening: socket.socket) -> None:
    with suppress(OSError):  # closed at the end of the test
        caller, _ = listening.accept()
        while data := caller.recv(100):
            caller.sendall(data)
        caller.close()


def test_a_group_that_is_cut_off_hears_nothing_and_goes_on_when_it_is_back(
    apart: Apart, carrier: Carrier
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=_echo, args=(listening,), daemon=True).start()
        carrier.pass_on(apart.listen(port), port)
        with apart.connect(port) as line:
            line.sendall(b"1")
            assert line.recv(1) == b"1"
            apart.cut_off()
            line.sendall(b"2")
            line.settimeout(SILENCE_SECONDS)
            with pytest.raises(TimeoutError):
                line.recv(1)
            apart.let_back()
            line.settimeout(BACK_SECONDS_MAX)
            assert line.recv(1) == b"2"


def test_a_standby_that_was_cut_off_takes_over_without_the_newest_rows(place: Path) -> None:
    primary = Followed(place / "home")
    try:
        url = primary.ensure("shop")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE sent (no int)")
            connection.execute("INSERT INTO sent VALUES (1)")
            standby = Standby(primary)
            standby.follow()
            standby.cut_off()
            connection.execute("INSERT INTO sent VALUES (2)")
            before = connection.execute(IDENTITY).fetchone()
        primary.stop_at_once()
        standby.take_over()
        primary.ensure("shop")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT no FROM sent").fetchall() == [(1,)]
            assert connection.execute(IDENTITY).fetchone() != before
    finally:
        primary.stop()


def test_what_a_restore_put_aside_can_be_read_until_it_is_forgotten(place: Path) -> None:
    server = Followed(place / "home")
    try:
        url = server.ensure("shop")
        backup = Backup(server.url("postgres"), "shop")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE sent (no int)")
        backup.take()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("INSERT INTO sent VALUES (1)")
        backup.restore()
        for name, rows in (("shop", []), (backup.lost, [(1,)])):
            with psycopg.connect(server.url(name)) as connection:
                assert connection.execute("SELECT no FROM sent").fetchall() == rows
        backup.forget()
    finally:
        server.stop()
