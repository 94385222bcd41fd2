"""/metrics: off without a token, closed to another one, and counted in the database."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from config.env import Environment
from reconciliation import alarms, exposition, heartbeat
from reconciliation.cases import open_case
from reconciliation.monitors import run
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.table import SIGNALS
from refunds.ledger import lock, sending
from tests import build
from tests.cast import Cast
from tests.monitors.stage import attempt, evidence, in_state

pytestmark = pytest.mark.django_db
TOKEN = "m" * 32


def _asked(settings: Any, header: str | None, token: str = TOKEN) -> Any:
    settings.METRICS_TOKEN = token
    return Client().get("/metrics", headers={"Authorization": header} if header else {})


@pytest.mark.parametrize("header", [None, "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN])
def test_another_token_is_answered_with_nothing(settings: Any, header: str | None) -> None:
    answer = _asked(settings, header)
    assert answer.status_code == 401
    assert b"aftersend" not in answer.content
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", [None, "Bearer ", f"Bearer {TOKEN}"])
def test_without_a_token_there_is_no_such_page(settings: Any, header: str | None) -> None:
    assert _asked(settings, header, token="").status_code == 404


def _numbers(settings: Any) -> dict[str, float]:
    answer = _asked(settings, f"Bearer {TOKEN}")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^\n]*"(,[a-z_]+="[^\n]*")*\})? \S+', line), line
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_an_empty_installation_has_no_numbers_but_the_stops(settings: Any) -> None:
    assert _numbers(settings) == {
        'aftersend_sending_stopped{kind="stop"}': 0,
        'aftersend_sending_stopped{kind="quarantine"}': 0,
    }


def test_what_is_open_is_counted(settings: Any, cast: Cast) -> None:
    operation = in_state(cast, "unknown", seconds_ago=1000)
    attempt(operation, 2, seconds_ago=5, outcome="unanswered")
    evidence(operation, "lookup", seconds_ago=5)
    build.order()
    open_case(lock(build.proposed(cast.echo).pk), "duplicate", "Two of them.")
    sending.pause("plain-weak", kind="outage", reason="gone", by="dispatcher")
    alarms.observe(SIGNALS["duplicates"], [Reading('a "b"\\', 1, "x")], timezone.now())
    run.read_all({}, timezone.now())
    heartbeat.beat(timezone.now())
    found = _numbers(settings)
    wanted = {
        'aftersend_operations{state="unknown",account="plain-main"}': 1,
        'aftersend_uncertain_minor{account="plain-main",currency="USD"}': 100,
        'aftersend_cases{reason="duplicate",owned="no"}': 1,
        'aftersend_attempts_last_hour{account="plain-main",outcome="unanswered"}': 2,
        'aftersend_lookups_last_hour{account="plain-main",verdict="absent"}': 1,
        'aftersend_account_paused{account="plain-weak",kind="outage"}': 1,
        'aftersend_alarm{signal="duplicates",subject="a \\"b\\"\\\\",level="page",acknowledged="no"}': 1,
        'aftersend_signal_value{signal="duplicates"}': 1,
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert 1000 <= found['aftersend_unknown_oldest_seconds{account="plain-main"}'] < 1100
    assert found['aftersend_signal_read_seconds{signal="duplicates"}'] < 60
    assert "aftersend_sweep_timestamp_seconds" in found


def test_a_short_token_ends_the_start() -> None:
    with pytest.raises(ValueError, match="32 characters or more"):
        Environment(metrics_token="short")


def test_every_number_says_what_it_is() -> None:
    names = [each.name for each in exposition.FAMILIES]
    assert len(set(names)) == len(names)
    for each in exposition.FAMILIES:
        assert each.name.startswith("aftersend_")
        assert each.says.endswith(".")
