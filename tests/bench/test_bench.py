"""What the bench says about figures, servers and machines: each way of being wrong is noticed."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from refunds.domain.outcome import Expected, Outcome, RawAnswer
from tests.bench import machine, report, server
from tests.bench.dialect import Dialect
from tests.bench.figures import Bar, failed, figure, line

KEPT = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "wal_level": "replica"}


@pytest.mark.parametrize("name", server.KEEPS)
def test_a_server_that_keeps_less_is_unsafe(name: str) -> None:
    assert server.unsafe(KEPT) == []
    assert server.unsafe(KEPT | {name: "off"}) == [f"{name} is off"]


def test_a_commit_that_waits_for_less_than_its_own_disk_is_unsafe() -> None:
    assert server.unsafe(KEPT | {"synchronous_commit": "local"}) == ["synchronous_commit is local"]


def test_what_the_migrations_make_and_what_is_there_are_compared_both_ways() -> None:
    made = frozenset({("operation.due", "btree (state)"), ("event.seq", "CHECK (seq > 0)")})
    assert server.differences(made, made) == []
    assert server.differences(made - {("operation.due", "btree (state)")}, made) == [
        "operation.due is missing"
    ]
    assert server.differences(made | {("orders.extra", "btree (ref)")}, made) == [
        "orders.extra is not of the migrations"
    ]
    other = frozenset({("operation.due", "btree (id)"), ("event.seq", "CHECK (seq > 0)")})
    assert server.differences(other, made) == ["operation.due is another"]


def test_a_figure_is_the_median_of_its_rounds_and_keeps_the_worst() -> None:
    found = figure("WAL", [4000.0, 6000.0, 4100.0], "B", Bar(must=5000, goal=4050))
    assert (found.value, found.min, found.max) == (4100, 4000, 6000)
    assert (found.met, found.reached) == (True, False)
    assert "4100 B (4000 to 6000)" in line(found)
    assert "goal 4050, not reached" in line(found)


def test_a_ratio_is_taken_within_each_round() -> None:
    bar = Bar(must=0.85, up=True)
    # A machine that gets slower from round to round slows both databases alike.
    same = figure("speed", [90, 45, 9], "1/s", bar, against="small", than=[100, 50, 10])
    assert (same.ratio, same.met) == (0.9, True)
    slower = figure("speed", [80, 40, 8], "1/s", bar, against="small", than=[100, 50, 10])
    assert (slower.ratio, slower.met) == (0.8, False)


@pytest.mark.parametrize(("values", "than"), [([], []), ([1.0, 2.0], [1.0])])
def test_no_figure_is_made_up(values: list[float], than: list[float]) -> None:
    with pytest.raises(ValueError, match="rounds were measured"):
        figure("x", values, "1", than=than)


def test_counts_are_judged_on_any_machine_and_time_on_a_quiet_one_only() -> None:
    count = figure("write transactions", [3.0], "1/op", Bar(must=2.1))
    time = figure("page", [9.0], "ms", Bar(must=1.3, of_time=True))
    assert failed([count, time], other_cores=0.1) == ["write transactions", "page"]
    assert failed([count, time], other_cores=1.2) == ["write transactions"]


def _one(factor: float) -> dict[str, Any]:
    counts = dict.fromkeys(
        ("send_write_tx", "proposal_write_tx", "wal_bytes", "send_wal_bytes", "images_bytes"), 1.0
    )
    burst = dict.fromkeys(
        ("worker_cpu_s_1000", "postgres_cpu_s_1000", "client_cpu_s_1000", "memory_mb"), 1.0
    )
    return {
        "counts": counts | {"round_trips": 4.0},
        "burst": burst | {"ops_s": 100 / factor, "cpu_s_1000": 2.0, "proposed_s": 9.0},
        "rate": {"p50": 30.0, "p95": 40.0, "p99": 50.0},
        "pages": {"queue": {"ms": [5.0 * factor] * 9, "queries": 7}},
        "admin": [60.0] * 9,
        "beside_admin": [5.0] * 9,
        "sweeps": {"ready": [1.0 * factor]},
        "notices": {"count": 100, "seconds": 2.0, "cpu_seconds": 0.5},
    }


@pytest.mark.parametrize(
    ("factor", "wrong"),
    [
        (1.1, []),
        (1.5, ["refunds in a burst, large database", "page queue, p50, large database"]),
    ],
)
def test_what_grows_with_the_database_is_told(factor: float, wrong: list[str]) -> None:
    rounds = [{"small": _one(1.0), "large": _one(factor)}] * 3
    assert failed(report.figures(rounds, large=1_000_000), other_cores=0.0) == wrong


def test_a_queue_that_is_hardly_faster_than_what_django_has_is_told() -> None:
    rounds = [{"small": _one(1.0), "large": _one(1.0) | {"admin": [24.0] * 9}}] * 3
    found = report.figures(rounds, large=1_000_000)
    assert failed(found, other_cores=0.0) == ["page queue beside it, p50, large database"]
    # Among few rows the admin has little to count, and nobody promised anything.
    assert failed(report.figures(rounds, large=10_000), other_cores=0.0) == []


def test_the_machine_is_read_as_linux_writes_it() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    shown = f"cpu  {ticks} {ticks} {ticks} 900 900 {ticks} {ticks} {ticks} 7 7\ncpu0 1 2 3\n"
    assert machine.busy_seconds(shown) == 6
    assert os.getpid() in machine.tree(os.getppid())
    assert machine.memory_mb([os.getpid()]) > 1


EXPECTED = Expected(marker="0190a5c2", payment_ref="pi_1", amount_minor=100, currency="USD")


@pytest.mark.parametrize(
    ("status", "said", "outcome"),
    [
        (200, {"ref": "re_0190a5c2_1", "status": "succeeded", "amount": 100}, Outcome.CONFIRMED),
        (200, {"ref": "re_other_1", "status": "succeeded", "amount": 100}, Outcome.UNANSWERED),
        (200, {"ref": "re_0190a5c2_1", "status": "succeeded", "amount": 99}, Outcome.UNANSWERED),
        (200, {"ref": "re_0190a5c2_1", "status": "maybe", "amount": 100}, Outcome.UNANSWERED),
        (500, {"ref": "re_0190a5c2_1", "status": "succeeded", "amount": 100}, Outcome.UNANSWERED),
        (200, {}, Outcome.UNANSWERED),
    ],
)
def test_the_little_protocol_proves_only_our_own_refund(
    status: int, said: dict[str, Any], outcome: Outcome
) -> None:
    raw = RawAnswer(
        status=status,
        headers={"content-type": "application/json"},
        body=json.dumps(said).encode(),
    )
    assert Dialect().read_answer(raw, EXPECTED).outcome is outcome
