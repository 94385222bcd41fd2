"""Some hundred schedules without a database, and mistakes that they must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.simulation import about_the_book
from tests.simulation.core import played
from tests.simulation.hearsay import CONTRACTS

SCHEDULES = 600


def test_hundreds_of_schedules_end_with_nothing_wrong_under_every_contract() -> None:
    seen = Counter[str]()
    for seed in range(SCHEDULES):
        wrong, what = played(seed)
        assert wrong == [], f"seed {seed}"
        seen.update(what)
    assert len(CONTRACTS) == 72
    # All that the schedules are about does happen in them.
    for event in ("resubmitted", "proved_absent", "proved_not_executed", "found_failed"):
        assert seen[f"event {event}"] >= 10, event
    for fate in ("not_sent", "turned_away", "killed", "slept", "lost", "late", "answer_lost"):
        assert seen[f"send {fate}"] >= 20, fate


def test_seed_4204_a_second_send_that_slept_past_the_life_of_its_key() -> None:
    """Its provider closes no silent connection: the copy was written half an hour after its claim."""
    assert played(4204)[0] == []


@pytest.mark.parametrize(
    ("finding", "counts"),
    [
        ("step 3: duplicates: m-1 has 2 refunds", True),
        ("false end: m-1 is failed, and the book has its refund", True),
        ("raised at step 3: look raised IntegrityError: ['twice']", False),
        ("after 400 steps: [('plain-main', 'unknown', None)]", False),
        ("step 9, weak: unknown in the end, without a case", False),
        ("step 31, the last: a case where none is needed: ('plain-main', '{mismatch}')", False),
    ],
)
def test_a_guard_counts_as_missed_by_what_is_about_the_book_only(
    finding: str, counts: bool
) -> None:
    assert about_the_book(finding) is counts


def _believes_at_once(*_: object) -> datetime:
    return datetime(2000, 1, 1, tzinfo=UTC)


MISTAKES: dict[str, tuple[str, Callable[..., object]]] = {
    "an absence is believed whenever it was asked for": ("quiet_until", _believes_at_once),
    "a key lives for ever": ("_key_lives", lambda *_: True),
    "any attempt may be sent again": ("not_executed", lambda _: True),
    "a refusal speaks for every attempt": ("others_explained", lambda *_, **__: True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_what_proves_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, instead = MISTAKES[mistake]
    monkeypatch.setattr(f"reconciliation.proof.{name}", instead)
    monkeypatch.setattr(f"reconciliation.decide.{name}", instead, raising=False)
    assert any(played(seed)[0] for seed in range(3000))
