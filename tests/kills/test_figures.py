"""What `make kills` counts: each way in which it could come out wrong is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from config.celery import app
from tests.kills.__main__ import BREAKS
from tests.kills.figures import BUSY_SECONDS, SWEEP_SECONDS, Figures, Row, count, told
from tests.walkthrough.broken import MODES

IDS = ["a", "b", "c"]
ROWS = [Row(each, 2.5, 1.2, recorded=True) for each in IDS]


def _wrong(found: Figures, *, keys_honoured: bool = False) -> list[str]:
    sentences = told(found, len(IDS), keys_honoured=keys_honoured)
    return [said for said, holds in sentences.items() if not holds]


def test_one_refund_one_request_and_one_lookup_for_each_is_as_it_must_be() -> None:
    found = count(ROWS, IDS, IDS, set(IDS))
    assert _wrong(found) == []
    assert (found.killed_operations, found.recorded, found.resolved_by_lookup) == (3, 3, 3)


def test_a_second_refund_is_a_double_and_a_second_request_is_told_where_keys_are_ignored() -> None:
    twice = count(ROWS, [*IDS, "a"], [*IDS, "a"], set(IDS))
    assert (twice.doubles, twice.further_sends) == (1, 1)
    assert _wrong(twice) == ["1 doubles", "1 further requests"]
    replayed = count(ROWS, IDS, [*IDS, "a"], set(IDS))
    assert _wrong(replayed) == ["1 further requests"]
    assert _wrong(replayed, keys_honoured=True) == []


def test_a_refund_that_the_book_does_not_have_was_never_sent() -> None:
    found = count(ROWS, IDS[1:], IDS[1:], set(IDS))
    assert (found.never_sent, found.further_sends) == (1, 0)
    assert _wrong(found) == ["1 never sent"]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"unknown_after_lease": SWEEP_SECONDS + BUSY_SECONDS + 0.1}, "unknown within"),
        ({"unknown_after_lease": None, "found_after_unknown": None}, "unknown within"),
        ({"found_after_unknown": None}, "resolved by lookup"),
        ({"recorded": False}, "resolved by lookup"),
    ],
)
def test_one_that_is_unknown_too_late_or_not_found_by_a_lookup_is_told(
    changed: dict[str, float | None], word: str
) -> None:
    rows = [replace(ROWS[0], **changed), *ROWS[1:]]  # type: ignore[arg-type]
    assert any(word in said for said in _wrong(count(rows, IDS, IDS, set(IDS))))


def test_one_that_was_answered_before_the_kill_is_no_killed_one() -> None:
    found = count(ROWS, IDS, IDS, {"a", "b"})
    assert found.killed_operations == 2
    assert any("were killed" in said for said in _wrong(found))


def test_the_sweep_that_is_waited_for_is_the_one_of_the_schedule() -> None:
    assert app.conf.beat_schedule["end leases"]["schedule"] == SWEEP_SECONDS


def test_every_switch_is_one_of_the_workers() -> None:
    assert {*BREAKS.values()} - {""} <= {*MODES}
