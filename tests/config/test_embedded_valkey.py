from __future__ import annotations

import os
import signal
from pathlib import Path

import kombu
import pytest
import redis

from config.embedded import EmbeddedError, Valkey
from tests.config.conftest import gone, run_python

SHOW_PID = """
import sys
from pathlib import Path
from config.embedded import Valkey
server = Valkey(Path(sys.argv[1]))
server.ensure()
print(server.pid())
"""


def test_a_stored_message_survives_a_killed_broker(place: Path) -> None:
    """Stored: while its log is being synced a write may wait, and such a message may be lost;
    the sweeps find the work all the same."""
    server = Valkey(place / "a room")
    with kombu.Connection(server.ensure()) as connection:
        connection.SimpleQueue("bell").put({"operation": 41})
    with redis.Redis.from_url(server.cache_url(), single_connection_client=True) as client:
        # It waits for what its own connection wrote, and this comes after the bell in the log.
        client.set("after", "the bell")
        synced, _ = client.execute_command("WAITAOF", 1, 0, 5000)
        assert synced == 1
    first = server.pid()
    assert first is not None
    os.kill(first, signal.SIGKILL)

    with kombu.Connection(server.ensure()) as connection:
        message = connection.SimpleQueue("bell").get(timeout=5)

    assert message.payload == {"operation": 41}
    assert server.pid() not in (None, first)


def test_three_programs_at_once_start_one_broker(place: Path) -> None:
    programs = [run_python(SHOW_PID, str(place)) for _ in range(3)]
    pids = {program.communicate(timeout=60)[0].strip() for program in programs}

    assert pids == {str(Valkey(place).pid())}


def test_clearing_the_cache_leaves_the_queue(place: Path) -> None:
    server = Valkey(place)
    with kombu.Connection(server.ensure()) as connection:
        queue = connection.SimpleQueue("bell")
        queue.put({"operation": 41})
        cache = redis.Redis.from_url(server.cache_url())
        cache.set("word", "said")

        cache.flushdb()

        assert cache.get("word") is None
        assert queue.get(timeout=5).payload == {"operation": 41}


def test_stop_ends_the_broker_and_may_be_repeated(place: Path) -> None:
    server = Valkey(place)
    server.ensure()
    pid = server.pid()
    assert pid is not None

    server.stop()
    server.stop()

    assert gone(pid)
    assert not server.alive()


def test_a_path_too_long_for_a_socket_names_the_way_out(place: Path) -> None:
    with pytest.raises(EmbeddedError, match="AFTERSEND_RUN_DIR to a shorter folder"):
        Valkey(place / ("deep" * 30)).ensure()
