"""What the run says about rates: each way of not keeping one is noticed."""

from __future__ import annotations

import pytest

from tests.due_at_once.measured import percentile, rates


def _evenly(per_second: float, seconds: float, *, began: float = 1000) -> list[float]:
    return [began + number / per_second for number in range(int(per_second * seconds) + 1)]


@pytest.mark.parametrize(
    ("per_second", "kept", "exceeded"), [(5, True, False), (5.5, False, True), (4.5, False, False)]
)
def test_a_rate_is_kept_within_a_twentieth(per_second: float, kept: bool, exceeded: bool) -> None:
    found = rates(_evenly(per_second, 600), 5, 1600)
    assert (found.windows, found.kept, found.exceeded) == (10, kept, exceeded)


def test_one_fast_minute_of_ten_is_noticed_and_so_is_one_that_is_slow() -> None:
    even = _evenly(5, 600)
    faster = even + [each + 0.01 for each in even if 1120 < each < 1180][:20]
    slower = [each for n, each in enumerate(even) if not (1120 < each < 1180 and n % 10 == 0)]
    assert rates(faster, 5, 1600).exceeded
    assert not rates(slower, 5, 1600).kept
    assert not rates(slower, 5, 1600).exceeded


def test_the_burst_after_a_rest_is_within_what_is_kept_and_the_tail_is_no_window() -> None:
    burst = [1000.0] * 10
    assert rates(burst + _evenly(5, 620), 5, 1600).kept


def test_where_less_is_due_than_may_be_asked_only_too_much_counts() -> None:
    few = [each for n, each in enumerate(_evenly(5, 600)) if each < 1300 or n % 2]
    found = rates(few, 5, 1300)
    assert (found.windows, found.kept) == (5, True)
    assert not rates(few, 5, 1600).kept
    many = few + [each + 0.01 for each in few if each > 1300]
    assert not rates(many, 5, 1300).exceeded
    assert rates(many + [each + 0.02 for each in few if each > 1300], 5, 1300).exceeded


def test_a_run_that_is_shorter_than_a_window_is_one() -> None:
    found = rates(_evenly(10, 30), 5, 1030)
    assert (found.windows, found.exceeded) == (1, True)


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(each) for each in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (50, 95)
    assert percentile([7.0], 0.95) == 7
    assert percentile([], 0.95) == 0
