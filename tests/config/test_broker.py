from __future__ import annotations

from pathlib import Path

import pytest

from config import broker
from config.embedded import Valkey
from tests.config.bell_app import bell_app, worker
from tests.config.conftest import until


def test_a_bell_rings_through_the_embedded_broker(place: Path, tmp_path: Path) -> None:
    url = Valkey(place).ensure()
    trace = tmp_path / "trace"
    with worker(url, broker.LOOKUPS):
        bell_app(url).send_task("ring", args=(str(trace),), queue=broker.LOOKUPS, countdown=1)
        until(trace.exists, seconds=30)

    assert len(trace.read_text().splitlines()) == 1


@pytest.mark.parametrize("url", ["memory://", "sqla+postgresql://localhost/x", "filesystem://"])
def test_a_broker_that_forgets_what_a_killed_worker_held_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="amqp://, amqps://, redis://"):
        broker.settings_for(url)
