"""Bells on their way to the broker: what is ready at once is told by one wake-up for all of it."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from config import celery
from refunds.crew import WAKE_SPACING_SECONDS, WAKE_SPACING_SECONDS_MAX

Sent = list[tuple[str, list[str], float | None]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What the broker's library is given."""
    messages: Sent = []

    def note(task: str, args: list[str], countdown: float | None, **_: Any) -> None:
        messages.append((task, args, countdown))

    monkeypatch.setattr(celery.app, "send_task", note)
    return messages


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, set by the test; no bell has rung before."""
    spaced = celery._Spaced(WAKE_SPACING_SECONDS, WAKE_SPACING_SECONDS_MAX)
    monkeypatch.setattr(celery, "_wakes", spaced)
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_bells_that_follow_each_other_closely_are_one(sent: Sent, clock: list[float]) -> None:
    for no in range(20):
        celery.ring("refunds.tasks.send", f"op-{no}", 0)
    assert sent == [("refunds.tasks.send_ready", [], None)]
    clock[0] += WAKE_SPACING_SECONDS
    celery.ring("refunds.tasks.send", "op-20", 0)
    assert len(sent) == 2


def test_the_more_bells_there_are_the_fewer_are_rung_but_never_too_few(
    sent: Sent, clock: list[float]
) -> None:
    """Whoever hears one looks again when the longest time is over in which one may be left out."""
    rung_at = []
    for _ in range(400):
        before = len(sent)
        celery.ring("refunds.tasks.send", "op", 0)
        if len(sent) > before:
            rung_at.append(clock[0])
        clock[0] += 0.001
    apart = [later - sooner for sooner, later in pairwise(rung_at)]
    assert max(apart) <= WAKE_SPACING_SECONDS_MAX + 0.001
    assert apart[0] < apart[-1]
    clock[0] += 1
    celery.ring("refunds.tasks.send", "op", 0)
    clock[0] += 1
    celery.ring("refunds.tasks.send", "op", 0)
    clock[0] += WAKE_SPACING_SECONDS + 0.001
    before = len(sent)
    celery.ring("refunds.tasks.send", "op", 0)
    assert len(sent) == before + 1


def test_bells_that_come_one_by_one_are_all_rung_also_after_two_came_together(
    sent: Sent, clock: list[float]
) -> None:
    """One left out waits, so a steady trickle is not treated as a crowd for one that came early."""
    celery.ring("refunds.tasks.send", "op", 0)
    celery.ring("refunds.tasks.send", "op", 0)
    for _ in range(50):
        clock[0] += 0.020
        celery.ring("refunds.tasks.send", "op", 0)
    assert len(sent) >= 50


def test_a_bell_for_later_names_its_refund(sent: Sent, clock: list[float]) -> None:
    celery.ring("refunds.tasks.send", "op-1", 10)
    celery.ring("refunds.tasks.send", "op-2", 10)
    assert sent == [("refunds.tasks.send", [f"op-{no}"], 10) for no in (1, 2)]


def test_every_hand_that_is_called_gets_a_bell(sent: Sent, clock: list[float]) -> None:
    for _ in range(3):
        celery.ring("refunds.tasks.send_ready", "", 0)
    assert len(sent) == 3


def test_other_bells_are_not_left_out(sent: Sent, clock: list[float]) -> None:
    for task in ("refunds.tasks.resend", "reconciliation.tasks.look_up"):
        celery.ring(task, "op-1", 0)
        celery.ring(task, "op-2", 0)
    assert [args for _, args, _ in sent] == [["op-1"], ["op-2"]] * 2


def test_a_wake_up_lies_in_the_senders_queue_without_passing_an_exchange() -> None:
    with celery.app.connection_for_write("memory://") as carrier:
        celery.app.send_task("refunds.tasks.send_ready", connection=carrier)
        channel: Any = carrier.default_channel
        message = channel.basic_get("money")
    assert message is not None
    assert message.headers["task"] == "refunds.tasks.send_ready"
    assert message.delivery_info["exchange"] == ""
