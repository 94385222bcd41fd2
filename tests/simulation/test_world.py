"""The stage of the schedules itself: what it did wrong once, and must not do again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from refunds.models import Operation
from tests.cast import assemble
from tests.simulation.clock import movable
from tests.simulation.provider import SandboxHere
from tests.simulation.wire import Flying
from tests.simulation.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True, scope="module")
def _movable(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), ExitStack() as database:
        database.enter_context(movable())
        yield


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    provider = SandboxHere(tmp_path / "book.sqlite3")
    made = World(provider, assemble(), seed=2)
    yield made
    made.witness.close()
    provider.stop()


def _request(world: World) -> httpx.Request:
    return httpx.Request(
        "POST",
        "http://127.0.0.1/plain/plain-main/refunds",
        headers={"Authorization": "Bearer sandbox-key-plain-main", "Idempotency-Key": "k-1"},
        json={
            "payment": world.provider.payment(),
            "amount_minor": 4000,
            "currency": "USD",
            "reason_code": "customer_request",
            "aftersend_operation": "m-1",
        },
    )


def test_what_is_in_the_air_lands_when_it_is_due_and_not_when_a_long_time_has_passed(
    world: World,
) -> None:
    """Otherwise it is younger in the book than its provider promises, and a list that lags by some
    seconds does not show it yet when every bound is long over."""
    with world.clock:
        began = timezone.now()
        world.wire.flying.append(Flying(2, _request(world)))
        world.passes(610)
        [refund] = world.provider.refunds("plain-main")
        created = datetime.fromisoformat(str(refund["created_at"]))
        assert 2 <= (created - began).total_seconds() < 60
        assert (timezone.now() - began).total_seconds() >= 610
    assert world.wire.flying == []


def test_where_an_answer_was_about_another_refund_people_may_be_left_with_its_case(
    world: World,
) -> None:
    """The schedule waited for ever for what only a person could say."""
    assert world.ends_by_itself("plain-nokeys")
    world.wire.fates["send mixed_up"] += 1
    assert not world.ends_by_itself("plain-nokeys")


def test_a_connection_that_broke_is_taken_anew_also_where_an_act_swallowed_it(world: World) -> None:
    """With the door saying yes to what it had not stored, the next statement ended the whole run."""

    def swallows() -> str:
        assert connection.connection is not None
        connection.connection.close()
        with contextlib.suppress(OperationalError):
            Operation.objects.exists()
        return "stored"

    with world.clock:
        world._survives("notice", swallows)
        assert not Operation.objects.exists()
