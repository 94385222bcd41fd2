"""Every trace that hurt a model without one of the rules, replayed on the engine that has them all.

The trace is the name of its test. `make model REPLAY=1` takes the rules out of the engine, and sees
the same tests fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.model.replay import traces
from tests.model.replay.theatre import Theatre
from tests.simulation.clock import movable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def theatre(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Theatre]:
    with django_db_blocker.unblock(), ExitStack() as after:
        after.enter_context(movable())
        made = Theatre(tmp_path_factory.mktemp("replays") / "book.sqlite3")
        after.callback(made.close)
        yield made


@pytest.mark.parametrize("trace", traces.operations(), ids=lambda trace: trace.name)
def test_a_trace_of_one_refund_is_harmless(theatre: Theatre, trace: traces.Trace) -> None:
    assert theatre.play(trace) == []


@pytest.mark.parametrize("trace", traces.orders(), ids=lambda trace: trace.name)
def test_a_trace_of_one_order_is_harmless(theatre: Theatre, trace: traces.OrderTrace) -> None:
    assert theatre.play_order(trace) == []


@pytest.mark.parametrize("trace", traces.notices(), ids=lambda trace: trace.name)
def test_a_trace_of_notices_is_harmless(theatre: Theatre, trace: traces.NoticeTrace) -> None:
    assert theatre.play_notices(trace) == []
