"""Bells on their way to the broker: what is ready at once is told by one wake-up for all of it."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from config import celery
from refunds.crew import WAKE_SECONDS

AT_ONCE = celery._WAKES_AT_ONCE
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
    spaced = celery._Spaced(WAKE_SECONDS, AT_ONCE)
    monkeypatch.setattr(celery, "_wakes", spaced)
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def _rings(clock: list[float], sent: Sent, times: int, every_seconds: float) -> list[float]:
    """Ring so often; when what was told went out."""
    rung_at = []
    for _ in range(times):
        before = len(sent)
        celery.ring("refunds.tasks.send", "op", 0)
        if len(sent) > before:
            rung_at.append(clock[0])
        clock[0] += every_seconds
    return rung_at


def test_a_bell_names_no_refund(sent: Sent, clock: list[float]) -> None:
    celery.ring("refunds.tasks.send", "op-1", 0)
    assert sent == [("refunds.tasks.send_ready", [], None)]


def test_each_of_fifty_a_second_is_told_at_once(sent: Sent, clock: list[float]) -> None:
    assert len(_rings(clock, sent, 200, 0.02)) == 200


def test_of_very_many_few_are_told_and_never_too_few(sent: Sent, clock: list[float]) -> None:
    """Whoever hears one goes on looking for as long as another may be left out."""
    rung_at = _rings(clock, sent, 1000, 0.001)
    assert len(rung_at) <= AT_ONCE + 1000 * 0.001 / WAKE_SECONDS
    apart = [later - sooner for sooner, later in pairwise(rung_at)]
    assert max(apart) <= WAKE_SECONDS + 0.002


def test_after_a_crowd_each_is_told_again(sent: Sent, clock: list[float]) -> None:
    _rings(clock, sent, 1000, 0.001)
    clock[0] += 2 * WAKE_SECONDS
    assert len(_rings(clock, sent, AT_ONCE, 0.001)) == AT_ONCE


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
