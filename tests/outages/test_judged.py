"""What `make outages` counts: each way in which it could come out wrong is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audit_book import FAULTS
from tests.outages.__main__ import SCENARIOS
from tests.outages.judged import Verdict, judged
from tests.walkthrough.broken import MODES

IDS = ["a", "b", "c"]
REQUESTS = dict.fromkeys(IDS, 1)
OPERATIONS = [(each, "succeeded", 1, False) for each in IDS]
CLEAN: dict[str, Any] = {**dict.fromkeys((*FAULTS, "unresolved"), 0), "found": {}}


def _wrong(verdict: Verdict) -> set[str]:
    return {name for name, (_, holds) in verdict.must.items() if not holds}


def test_one_request_and_one_refund_for_each_is_as_it_must_be() -> None:
    verdict = judged(CLEAN, REQUESTS, IDS, OPERATIONS, 3)
    assert verdict.ok
    assert verdict.figures["refunds"] == verdict.figures["requests"] == 3


@pytest.mark.parametrize("name", [*FAULTS, "unresolved"])
def test_whatever_the_auditor_finds_is_told(name: str) -> None:
    assert _wrong(judged(CLEAN | {name: 1}, REQUESTS, IDS, OPERATIONS, 3)) == {name}


def test_a_request_that_no_attempt_stands_for_was_sent_without_a_commit() -> None:
    assert _wrong(judged(CLEAN, REQUESTS | {"a": 2}, IDS, OPERATIONS, 3)) == {"uncommitted"}
    assert "uncommitted" in _wrong(judged(CLEAN, REQUESTS | {"x": 1}, IDS, OPERATIONS, 3))


def test_an_attempt_that_sent_nothing_is_no_fault() -> None:
    assert judged(CLEAN, REQUESTS, IDS, [("a", "succeeded", 2, False), *OPERATIONS[1:]], 3).ok


def test_a_refund_that_is_nowhere_or_there_twice_is_told() -> None:
    assert _wrong(judged(CLEAN, REQUESTS, IDS, OPERATIONS, 4)) == {"all_paid_once"}
    assert _wrong(judged(CLEAN, REQUESTS, [*IDS, "a"], OPERATIONS, 3)) == {"all_paid_once"}
    assert _wrong(judged(CLEAN, REQUESTS, IDS[1:], OPERATIONS, 3)) == {"all_paid_once"}


def test_those_that_were_unknown_for_a_while_are_counted() -> None:
    verdict = judged(CLEAN, REQUESTS, IDS, [("a", "succeeded", 1, True), *OPERATIONS[1:]], 3)
    assert verdict.ok
    assert verdict.figures["unknown_meanwhile"] == 1


def test_every_scenario_can_be_broken_and_each_break_is_of_one() -> None:
    breaks = [each for scenario in SCENARIOS.values() for each in scenario.broken_by]
    assert all(scenario.broken_by for scenario in SCENARIOS.values())
    assert len(breaks) == len(set(breaks))
    assert "lease-requeue" in MODES
