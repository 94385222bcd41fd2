"""Calls whose time is up are ended, each at its own time, by one thread."""

from __future__ import annotations

import multiprocessing
import queue
import threading

from refunds.providers.deadlines import Deadlines

PATIENCE_SECONDS = 20
FAR_SECONDS, NEAR_SECONDS = 600, 0.05


def test_what_is_due_first_ends_first_although_it_came_later() -> None:
    ended: queue.Queue[str] = queue.Queue()
    deadlines = Deadlines()
    deadlines.watch(FAR_SECONDS, lambda: ended.put("far"))
    deadlines.watch(2 * NEAR_SECONDS, lambda: ended.put("near"))
    deadlines.watch(NEAR_SECONDS, lambda: ended.put("nearest"))
    assert [ended.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == ["nearest", "near"]
    assert ended.empty()


def test_a_call_that_has_ended_by_itself_is_left_alone() -> None:
    ended: queue.Queue[str] = queue.Queue()
    deadlines = Deadlines()
    deadlines.watch(NEAR_SECONDS, lambda: ended.put("called off")).call_off()
    deadlines.watch(2 * NEAR_SECONDS, lambda: ended.put("the next"))
    assert ended.get(timeout=PATIENCE_SECONDS) == "the next"
    assert ended.empty()


def test_many_calls_take_one_thread() -> None:
    deadlines = Deadlines()
    before = threading.active_count()
    for _ in range(50):
        deadlines.watch(FAR_SECONDS, lambda: None)
    assert threading.active_count() == before + 1


def _ends_in_a_child(deadlines: Deadlines, told: multiprocessing.Queue[str]) -> None:
    ended = threading.Event()
    deadlines.watch(NEAR_SECONDS, ended.set)
    told.put("ended" if ended.wait(PATIENCE_SECONDS) else "not ended")


def test_a_forked_child_has_a_thread_of_its_own() -> None:
    deadlines = Deadlines()
    first = threading.Event()
    deadlines.watch(NEAR_SECONDS, first.set)
    assert first.wait(PATIENCE_SECONDS)
    forked = multiprocessing.get_context("fork")
    told: multiprocessing.Queue[str] = forked.Queue()
    child = forked.Process(target=_ends_in_a_child, args=(deadlines, told))
    child.start()
    assert told.get(timeout=2 * PATIENCE_SECONDS) == "ended"
    child.join(PATIENCE_SECONDS)
