from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import amqp.exceptions
import celery
import kombu
import pytest

from config import broker
from tests.config.bell_app import bell_app, worker
from tests.config.conftest import until
from tests.config.rabbitmq import rabbitmq, server_program

pytestmark = pytest.mark.skipif(
    server_program() is None, reason="rabbitmq-server is not installed (apt-get install it)"
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="as-rabbit-", dir="/tmp"))
    try:
        with rabbitmq(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def bell(url: str) -> celery.Celery:
    with kombu.Connection(url) as connection:
        for queue in broker.queues():
            bound = queue.bind(connection.channel())
            bound.declare()
            bound.purge()
    return bell_app(url)


@pytest.mark.parametrize("countdown_seconds", [None, 1])
def test_a_bell_rings_through_a_quorum_queue(
    bell: celery.Celery, url: str, tmp_path: Path, countdown_seconds: int | None
) -> None:
    trace = tmp_path / "trace"
    with worker(url, broker.LOOKUPS):
        if countdown_seconds is not None:  # the worker lays out the queues for delayed delivery
            bell.send_task("ring", args=(str(tmp_path / "up"),), queue=broker.LOOKUPS)
            until((tmp_path / "up").exists, seconds=30)
        bell.send_task(
            "ring", args=(str(trace),), queue=broker.LOOKUPS, countdown=countdown_seconds
        )
        until(trace.exists, seconds=30)

    assert len(trace.read_text().splitlines()) == 1


def test_both_queues_are_quorum_queues(bell: celery.Celery, url: str) -> None:
    for name in (broker.MONEY, broker.LOOKUPS):
        with kombu.Connection(url) as connection:
            classic = kombu.Queue(name, queue_arguments={"x-queue-type": "classic"})
            with pytest.raises(amqp.exceptions.PreconditionFailed, match="x-queue-type"):
                classic.bind(connection.channel()).queue_declare()


def test_what_a_dead_worker_held_comes_back_a_limited_number_of_times(
    bell: celery.Celery, url: str
) -> None:
    bell.send_task("ring", args=("/dev/null",), queue=broker.MONEY)
    deliveries = [number for number in range(10) if _take_and_die(url)]

    assert deliveries == list(range(1 + broker.DELIVERIES_MAX))


def _take_and_die(url: str) -> bool:
    """Take one message from `money` and leave without a word about it; False for an empty queue."""
    with kombu.Connection(url) as connection:
        money = next(queue for queue in broker.queues() if queue.name == broker.MONEY)
        channel = connection.channel()
        bound = money.bind(channel)
        taken: list[object] = []

        def answered() -> bool:
            taken.append(bound.get(no_ack=False))
            return taken[-1] is not None or _is_empty(channel)

        until(answered)
    return taken[-1] is not None


def _is_empty(channel: Any) -> bool:
    counted = channel.queue_declare(broker.MONEY, passive=True)
    return bool(counted.message_count == 0)
