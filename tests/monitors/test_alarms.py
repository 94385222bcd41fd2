"""Alarms: told once per firing, kept while they last, seen by people, never silent about themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError
from django.utils import timezone
from structlog.testing import capture_logs

from reconciliation import alarms
from reconciliation.models import Acknowledgement, Alarm, Consequence, SignalRun
from reconciliation.monitors import run, traffic
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.signal import Signal
from reconciliation.monitors.table import MONITORS, SIGNALS
from refunds.domain.errors import Refusal
from tests.cast import Cast

pytestmark = pytest.mark.django_db
SIGNAL = Signal(
    name="heat", says="It is hot.", warn=10, page=20, unit="degrees", why="summer", act="Cool it."
)
NOON = datetime.fromisoformat("2026-11-29T12:00:00Z")


def observe(
    minute: float, *readings: tuple[str, float], asked: frozenset[str] | None = None
) -> Any:
    """What was told at that minute, as (subject, level)."""
    found = [Reading(subject, value, f"{value} degrees.") for subject, value in readings]
    with capture_logs() as logs:
        alarms.observe(SIGNAL, found, NOON + timedelta(minutes=minute), asked=asked)
    return [(each["subject"], each["urgency"]) for each in logs if each["event"] == "alarm_fired"]


@pytest.mark.parametrize(
    ("value", "level"), [(10, ""), (10.1, "warn"), (20, "warn"), (20.1, "page")]
)
def test_a_threshold_itself_is_not_above_it(value: float, level: str) -> None:
    assert SIGNAL.level(value) == level


def test_a_firing_is_told_once_and_again_when_it_rises() -> None:
    assert observe(0, ("a", 9)) == []
    assert observe(1, ("a", 11), ("b", 5)) == [("a", "warn")]
    assert observe(2, ("a", 12)) == []
    assert observe(3, ("a", 21)) == [("a", "page")]
    assert observe(4, ("a", 12)) == []  # it stays a page until it ends
    alarm = Alarm.objects.get()
    assert (alarm.level, alarm.value, alarm.says) == ("page", 12, "12 degrees.")
    assert alarm.first_fired_at == NOON + timedelta(minutes=1)
    assert alarm.last_fired_at == NOON + timedelta(minutes=4)


def test_each_telling_is_written_to_the_outbox_once() -> None:
    for minute, value in enumerate((11, 11, 21, 21)):
        observe(minute, ("a", value))
    told = Consequence.objects.filter(kind="alarm").order_by("pk")
    assert [(each.words["level"], each.words["says"]) for each in told] == [
        ("warn", "11 degrees."),
        ("page", "21 degrees."),
    ]


def test_an_alarm_ends_when_it_has_been_quiet_and_the_next_one_is_told_anew() -> None:
    observe(0, ("a", 11))
    assert observe(1) == []
    assert observe(1.5, ("a", 11)) == []  # it swings; this is one firing
    assert observe(3.4) == []
    assert Alarm.objects.get().ended_at is None
    observe(3.5)
    assert Alarm.objects.get().ended_at == NOON + timedelta(minutes=3.5)
    assert observe(4, ("a", 11)) == [("a", "warn")]
    assert Alarm.objects.count() == 2


def test_what_was_not_asked_about_does_not_end() -> None:
    observe(0, ("a", 11), ("b", 11))
    observe(10, asked=frozenset({"b", "c"}))
    assert list(Alarm.objects.filter(ended_at=None).values_list("subject", flat=True)) == ["a"]


def test_whoever_acknowledges_is_left_in_peace_for_half_an_hour(cast: Cast) -> None:
    observe(0, ("a", 11))
    alarm = Alarm.objects.get()
    seen = alarms.acknowledge(
        alarm.pk, by=cast.omar, note="Calling the provider.", now=NOON + timedelta(minutes=1)
    )
    assert seen.until == NOON + timedelta(minutes=31)
    for minute in (2, 20, 30.9):
        assert observe(minute, ("a", 11)) == []
    assert observe(31, ("a", 11)) == [("a", "warn")]
    assert observe(32, ("a", 11)) == []


def test_an_alarm_that_rises_is_told_although_somebody_has_it(cast: Cast) -> None:
    observe(0, ("a", 11))
    alarms.acknowledge(Alarm.objects.get().pk, by=cast.omar, note="I am looking.", now=NOON)
    assert observe(1, ("a", 21)) == [("a", "page")]


def test_one_person_has_an_alarm_at_a_time_and_an_ended_one_nobody(cast: Cast) -> None:
    observe(0, ("a", 11))
    pk = Alarm.objects.get().pk

    def refused(by: Any, note: str, minute: float) -> str:
        now = NOON + timedelta(minutes=minute)
        with pytest.raises(Refusal) as error:
            alarms.acknowledge(pk, by=by, note=note, now=now)
        return error.value.code

    assert refused(cast.omar, "too short", 1) == "reason_too_short"
    assert refused(cast.omar, "card 4111 1111 1111 1111", 1) == "text_card_number"
    alarms.acknowledge(pk, by=cast.omar, note="I am looking.", now=NOON)
    assert refused(cast.ines, "I am looking too.", 1) == "already_acknowledged"
    alarms.acknowledge(pk, by=cast.ines, note="Omar went home.", now=NOON + timedelta(minutes=30))
    observe(40)
    assert refused(cast.ines, "Still looking at it.", 80) == "already_ended"
    assert Acknowledgement.objects.count() == 2


_CHANGES: dict[str, Callable[[], Any]] = {
    "update": lambda: Acknowledgement.objects.update(note="Nothing."),
    "delete": lambda: Acknowledgement.objects.all().delete(),
    "reopen": lambda: Alarm.objects.update(ended_at=None),
    "forget": lambda: Alarm.objects.all().delete(),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_the_database_keeps_what_was_acknowledged_and_what_has_ended(
    cast: Cast, change: str
) -> None:
    observe(0, ("a", 11))
    alarms.acknowledge(Alarm.objects.get().pk, by=cast.omar, note="I am looking.", now=NOON)
    observe(10)
    with pytest.raises(IntegrityError):
        _CHANGES[change]()


def test_a_monitor_that_cannot_be_read_is_an_alarm_and_silences_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "_OWN_ACTS", "SELECT broken")
    now = timezone.now()
    run.read_all({}, now)
    assert Alarm.objects.count() == 0  # once may be a hiccup
    run.read_all({}, now + timedelta(minutes=1))
    alarm = Alarm.objects.get()
    assert (alarm.name, alarm.subject, alarm.level) == ("no_data", "own_acts_refused", "warn")
    assert 'column "broken" does not exist' in alarm.says
    run.read_all({}, now + timedelta(minutes=16))
    alarm.refresh_from_db()
    assert alarm.level == "page"
    read = SignalRun.objects.filter(name__in=[each.name for each in MONITORS], failed_since=None)
    assert read.count() == len(MONITORS) - 1
    monkeypatch.undo()
    run.read_all({}, now + timedelta(minutes=18))
    alarm.refresh_from_db()
    assert alarm.ended_at is not None


def test_a_silent_schedule_and_silent_monitors_are_alarms() -> None:
    now = timezone.now()
    run.read_all({"look": 5.0}, now)
    run.watch(now + timedelta(minutes=4))
    assert Alarm.objects.count() == 0
    run.watch(now + timedelta(minutes=5, seconds=1))
    assert Alarm.objects.get().name == "monitors_silent"
    run.read_all({"look": 5.0}, now + timedelta(minutes=6))
    silent = Alarm.objects.get(name="schedule_silent")
    assert (silent.subject, silent.level) == ("look", "page")
    run.watch(now + timedelta(minutes=8))
    assert Alarm.objects.get(name="monitors_silent").ended_at is not None


def test_monitors_that_never_ran_are_silent_too() -> None:
    now = timezone.now()
    run.watch(now)
    run.watch(now + timedelta(minutes=6))
    assert Alarm.objects.get().name == "monitors_silent"
    cache.clear()


def test_each_signal_says_what_it_is_where_it_comes_from_and_what_to_do() -> None:
    for each in SIGNALS.values():
        assert each.says.endswith(".")
        assert each.act.endswith(".")
        assert each.why
        assert each.unit
        assert each.warn is not None or each.page is not None
        if each.warn is not None and each.page is not None:
            first, last = sorted((each.warn, each.page), reverse=each.falling)
            assert (each.warn, each.page) == (first, last)
