"""What the storm is made of: what it draws, what it reads along, and what it says of the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.storm import figures, points
from tests.storm.__main__ import FOUND_AS
from tests.storm.disasters import LOSSES, NAMES, RESTORED, TAKEN, foreseen
from tests.storm.drawn import SETTLED_BY_PROOF, drawn, weather
from tests.storm.figures import Figures, shortfalls
from tests.storm.progress import NO_DISASTER, Progress
from tests.storm.wire import Reading, is_whole
from tests.walkthrough.broken import MODES


def query(text: str) -> bytes:
    """A simple query as it goes over the wire."""
    words = text.encode() + b"\x00"
    return b"Q" + (len(words) + 4).to_bytes(4) + words


def test_the_same_seed_draws_the_same_storm_and_another_one_another() -> None:
    assert drawn(7, 200) == drawn(7, 200) != drawn(8, 200)
    assert weather(7) == weather(7) != weather(8)
    assert points.planned(7, 300) == points.planned(7, 300) != points.planned(8, 300)
    assert foreseen(7, 300) == foreseen(7, 300) != foreseen(8, 300)


def test_a_storm_has_refunds_of_every_kind_and_orders_with_two() -> None:
    wishes = drawn(1, 300)
    assert {each.account for each in wishes} >= set(SETTLED_BY_PROOF)
    assert 200 < len({each.order for each in wishes}) < 300


def test_every_point_is_struck_five_times_and_every_disaster_happens() -> None:
    happened = [points.Struck(point, 0, kind, 1) for point, kind in points.planned(1, 300)]
    assert min(points.hits(happened).values()) == points.hits_due(300) == 5
    assert len(points.planned(1, 5000)) == 10 * len(happened) == 100 * len(points.planned(1, 30))
    assert {each.kind for each in happened} == set(points.KINDS)
    assert {each.name for each in foreseen(1, 40)} == {*NAMES, *LOSSES}


@pytest.mark.parametrize("operations", [40, 300, 5000])
def test_a_backup_is_taken_before_it_is_restored_and_is_not_replaced_in_between(
    operations: int,
) -> None:
    for seed in range(20):
        came = [each for each in foreseen(seed, operations) if each.name in (TAKEN, RESTORED)]
        assert [each.name for each in came] == [TAKEN, RESTORED] * (len(came) // 2)
        assert 0.1 <= came[0].at < came[-1].at <= 0.95


def test_an_order_strikes_once_and_says_where(tmp_path: Path) -> None:
    points.lay_out(tmp_path)
    points.give(tmp_path, "claim.after", 3, "cut-db")
    points.give(tmp_path, "ack.before", 4, "exit")
    assert points.take(tmp_path, "claim.before") is None
    assert points.take(tmp_path, "claim.after") == "cut-db"
    assert points.take(tmp_path, "claim.after") is None
    [one] = points.struck(tmp_path)
    assert (one.point, one.number, one.kind) == ("claim.after", 3, "cut-db")
    assert points.call_off(tmp_path) == 1
    assert points.take(tmp_path, "ack.before") is None
    assert points.take(tmp_path / "nowhere", "ack.before") is None


def test_a_prepared_statement_is_known_by_its_name() -> None:
    def message(kind: bytes, said: bytes) -> bytes:
        return kind + (len(said) + 4).to_bytes(4, "big") + said

    reading = Reading()
    text = b"WITH ready AS (...) INSERT INTO attempt (...)"
    assert reading.sees(message(b"P", b"_pg3_0\0" + text + b"\0\0\0")) is None
    assert reading.sees(message(b"B", b"\0_pg3_1\0")) is None
    assert reading.sees(message(b"B", b"\0_pg3_0\0")) == "commit-claim"


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        ("INSERT INTO event (...) VALUES (..., 'reconciler', ...)", "decision"),
        ('INSERT INTO "approval" VALUES (1)', "approval"),
        ("INSERT INTO operation (id) VALUES (1)", "proposal"),
    ],
)
def test_the_commit_of_a_transaction_is_known_by_what_stood_in_it(inside: str, name: str) -> None:
    reading = Reading()
    assert reading.sees(query("BEGIN READ WRITE")) is None
    assert reading.sees(query(inside)) is None
    assert reading.sees(query("COMMIT")) == f"commit-{name}"
    assert reading.sees(query("BEGIN")) is None
    assert reading.sees(query("COMMIT")) is None  # of nothing that we know


def test_a_transaction_that_is_rolled_back_commits_nothing() -> None:
    reading = Reading()
    for text in ("BEGIN", 'INSERT INTO "approval" VALUES (1)', "ROLLBACK", "BEGIN"):
        assert reading.sees(query(text)) is None
    assert reading.sees(query("COMMIT")) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("WITH ready AS (...) INSERT INTO attempt (operation_id) SELECT 1", "claim"),
        ("INSERT INTO evidence (...) VALUES (1, 2, 'answer', now())", "answer"),
        ('INSERT INTO "evidence" VALUES (1)', "lookup"),
        ("\nINSERT INTO notice (event_id) VALUES (1)", "notice"),
    ],
)
def test_a_statement_that_commits_by_itself_is_known(text: str, name: str) -> None:
    assert Reading().sees(query(text)) == f"commit-{name}"


def test_an_answer_is_whole_when_the_server_is_ready_for_the_next() -> None:
    assert is_whole(b"C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I")
    assert not is_whole(b"C\x00\x00\x00\x0bCOMMIT\x00")


@pytest.mark.parametrize(
    ("proposed", "killed", "faults_share", "next_disaster", "ahead", "kills_due"),
    [
        (0, 0, 1.0, NO_DISASTER, False, True),
        (2, 0, 1.0, NO_DISASTER, True, True),
        (2, 3, 1.0, NO_DISASTER, False, False),
        (6, 10, 0.0, NO_DISASTER, True, False),
        (6, 10, 1.0, 0.5, False, False),
        (7, 10, 1.0, 0.5, True, False),
        (10, 10, 1.0, NO_DISASTER, False, False),
    ],
)
def test_refunds_wait_for_kills_faults_and_disasters_and_kills_for_refunds(
    *,
    proposed: int,
    killed: int,
    faults_share: float,
    next_disaster: float,
    ahead: bool,
    kills_due: bool,
) -> None:
    progress = Progress(
        operations=10, kills=10, faults_share=faults_share, next_disaster=next_disaster
    )
    progress.proposed, progress.killed = proposed, killed
    assert (progress.ahead, progress.kills_due) == (ahead, kills_due)


_SENT = [
    ("a", 1_000_000, "k-a", "b-a", "[]"),
    ("b", 1_000_000, "k-b", "b-b", '["land_late"]'),
    ("b", 3_000_000, "k-b", "b-b", "[]"),
    ("c", 1_000_000, "k-c", "b-c", '["drop_after_commit"]'),
]
_REFUNDS = [
    ("a", 1_000_500, "rf_a", "pi_1", 500),
    ("b", 2_000_000, "rf_b", "pi_1", 600),
    ("c", 1_000_500, "rf_c", "pi_2", 500),
    ("gone", 1_000_500, "rf_gone", "pi_3", 500),
]
_ELSEWHERE = {"rf_gone"}
_OPERATIONS = [
    ("a", "succeeded", "plain-main", False, False),
    ("b", "succeeded", "plain-main", True, False),
    ("c", "unknown", "plain-blind", True, True),
    ("d", "failed", "plain-main", True, False),
]


def test_figures_are_counted_from_the_book_and_the_ledger() -> None:
    assert figures.count(_SENT, _REFUNDS, _OPERATIONS, _ELSEWHERE, {"plain-main"}) == Figures(
        sent=4,
        in_book=4,
        succeeded=2,
        held_by_cases=1,
        elsewhere=1,
        paid_again=0,
        unexplained=0,
        unknown_seen=3,
        resent=1,
        late_landings=1,
        rewritten=0,
        cases=1,
        cases_not_allowed=0,
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"sent": [*_SENT, ("a", 2_000_000, "k-2", "b-a", "[]")]}, "rewritten"),
        ({"sent": [*_SENT, ("a", 2_000_000, "k-a", "b-2", "[]")]}, "rewritten"),
        ({"refunds": [*_REFUNDS, ("d", 1_000_500, "rf_d", "pi_4", 500)]}, "unexplained"),
        ({"refunds": [*_REFUNDS, ("c", 1_000_500, "rf_d", "pi_2", 500)]}, "paid_again"),
        ({"elsewhere": set[str]()}, "unexplained"),
        ({"refunds": _REFUNDS[1:]}, "unexplained"),
        ({"settled_by_proof": {"plain-blind"}}, "cases_not_allowed"),
    ],
)
def test_each_figure_that_must_be_nothing_is_noticed(change: dict[str, Any], name: str) -> None:
    usual: dict[str, Any] = {
        "sent": _SENT,
        "refunds": _REFUNDS,
        "operations": _OPERATIONS,
        "elsewhere": _ELSEWHERE,
        "settled_by_proof": {"plain-main"},
    }
    found = figures.count(**(usual | change))
    assert getattr(found, name) == 1
    assert len(shortfalls(found, 4)) > len(shortfalls(figures.count(**usual), 4))


def test_a_weak_storm_is_no_proof() -> None:
    strong = Figures(420, 100, 98, 1, 1, 0, 0, 15, 3, 1, 0, 1, 0)
    assert shortfalls(strong, 100) == []
    weak = Figures(100, 94, 94, 0, 0, 0, 0, 14, 2, 0, 0, 0, 0)
    assert len(shortfalls(weak, 100)) == 4


def test_every_switch_of_the_storm_exists_and_names_what_finds_it() -> None:
    assert set(FOUND_AS) - {"double"} <= set(MODES)
