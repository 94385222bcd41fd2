"""A few schedules in every run of the suite, and a planted mistake that they must notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from refunds.providers import http
from tests.simulation.broken import MODES
from tests.simulation.clock import movable
from tests.simulation.play import empty, played
from tests.simulation.themes import theme

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True, scope="module")
def _movable(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), ExitStack() as database:
        database.enter_context(movable())
        yield


@pytest.mark.parametrize("seed", [2, 4, 14, 19])
def test_a_schedule_ends_with_nothing_wrong(seed: int, tmp_path: Path) -> None:
    wrong, seen = played(seed, tmp_path / "book.sqlite3")
    assert wrong == []
    assert seen["event submission_started"] > 0


# One schedule of each, in the order of tests/simulation/themes.py.
THEMES = {
    1: "requests that fly for long",
    6: "senders that sleep after their last look at the clock",
    11: "a bank that sends money back",
    16: "strangers who refund equal amounts",
    21: "senders that die in the dark",
    3: "keys that live for some seconds",
    8: "several refunds of one order",
    13: "approvals that are taken back while the refund is on its way",
    18: "people who sign while requests fly",
    23: "lists that are read late",
}


@pytest.mark.parametrize("seed", THEMES, ids=lambda seed: THEMES[seed])
def test_a_schedule_that_is_about_something_ends_with_nothing_wrong(
    seed: int, tmp_path: Path
) -> None:
    about = theme(seed)
    assert about is not None
    wrong, seen = played(seed, tmp_path / "book.sqlite3")
    assert wrong == []
    assert seen["event submission_started"] > 0
    assert [theme(each) for each in (2, 4, 14, 19)] == [None] * 4


NAMED = {
    44: "a notice that agreed with the books asked people while lookups were down",
    464: "an answer about a stranger's equal refund became a success at the next lookup",
}


@pytest.mark.parametrize("seed", NAMED, ids=lambda seed: NAMED[seed])
def test_a_seed_that_found_a_fault_finds_nothing_any_more(seed: int, tmp_path: Path) -> None:
    assert played(seed, tmp_path / "book.sqlite3")[0] == []


def test_a_second_key_after_a_lost_answer_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        http, "call", http.call
    )  # put back afterwards, whatever the mode puts there
    MODES["new-key"]()
    for seed in range(1, 20):
        wrong, _ = played(seed, tmp_path / f"book-{seed}.sqlite3")
        empty()
        if wrong:
            break
    # The key is of no attempt that anybody committed, whether or not it pays twice.
    assert any("written before any attempt" in each for each in wrong)
