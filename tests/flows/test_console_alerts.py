"""The page Alerts: what fires and why, who has it, what ended, and never a false all clear."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reconciliation import alarms
from reconciliation.models import Acknowledgement, Alarm, SignalRun
from reconciliation.monitors import run, traffic
from reconciliation.monitors.reading import Reading
from reconciliation.monitors.table import SIGNALS
from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text

pytestmark = pytest.mark.django_db
NOTE = "Calling the provider."


def fire(name: str = "duplicates", subject: str = "order 4821", *, minutes_ago: float = 0) -> Alarm:
    at = timezone.now() - timedelta(minutes=minutes_ago)
    [alarm] = alarms.observe(SIGNALS[name], [Reading(subject, 1, "Two refunds of one.")], at)
    return alarm


def _press(client: Client, alarm: Alarm, note: str = NOTE) -> Any:
    address = f"/alerts/{alarm.pk}/acknowledge"
    return client.post(address, form_on(text(client.get("/alerts")), address) | {"note": note})


def test_quiet_is_said_only_while_the_monitors_have_data(cast: Cast, monkeypatch: Any) -> None:
    omar = signed_in(cast.omar)
    assert "The monitors have never run. Do not read this as all clear." in text(
        omar.get("/alerts")
    )
    now = timezone.now()
    run.read_all({}, now - timedelta(minutes=6))
    assert "Do not read this as all clear." in text(omar.get("/alerts"))
    run.read_all({}, now)
    assert "All monitors have data and none is firing. Oldest data point: " in text(
        omar.get("/alerts")
    )
    monkeypatch.setattr(traffic, "_OWN_ACTS", "SELECT broken")
    run.read_all({}, now)
    page = text(omar.get("/alerts"))
    assert "1 signal cannot be computed. Do not read this as all clear." in page
    assert "no data" in text(omar.get("/alerts?tab=watched"))


def test_an_alarm_says_what_since_when_held_against_what_and_what_to_do(cast: Cast) -> None:
    build.order()
    fire(minutes_ago=30)
    page = text(signed_in(cast.mia).get("/alerts"))
    for words in (
        "Two refunds of one.",
        "1 payment; it pages at the first",
        ">30 min",
        SIGNALS["duplicates"].says,
        SIGNALS["duplicates"].act,
        'href="/orders/4821"',
        "For the role ops or ops lead or admin to acknowledge.",
    ):
        assert words in page, words


def test_every_page_counts_the_alarms_that_nobody_has(cast: Cast) -> None:
    alarm = fire()
    omar = signed_in(cast.omar)
    assert 'Alerts</span> <span class="n">1' in text(omar.get("/unknown"))
    _press(omar, alarm)
    assert 'Alerts</span> <span class="n">' not in text(omar.get("/unknown"))


@pytest.mark.parametrize("name", ["omar", "ines", "adam"])
def test_whoever_acknowledges_is_named_with_the_note(cast: Cast, name: str) -> None:
    alarm = fire()
    client = signed_in(cast.people[name])
    answer = _press(client, alarm)
    assert answer.status_code == 303
    page = text(client.get(answer["Location"]))
    assert "Recorded at" in page
    assert f"{name} since" in page
    assert NOTE in page
    assert not has_form(page, f"/alerts/{alarm.pk}/acknowledge")
    assert Acknowledgement.objects.get().by == cast.people[name]


def test_a_lead_reads_and_does_not_acknowledge(cast: Cast) -> None:
    alarm = fire()
    ben = signed_in(cast.ben)
    address = f"/alerts/{alarm.pk}/acknowledge"
    assert not has_form(text(ben.get("/alerts")), address)
    fields = {"csrfmiddlewaretoken": ben.cookies["csrftoken"].value, "note": NOTE}
    assert ben.post(address, fields).status_code == 403
    assert RefusedAct.objects.get().act == "acknowledge"


def test_a_note_that_says_nothing_is_asked_for_again_and_kept(cast: Cast) -> None:
    alarm = fire()
    answer = _press(signed_in(cast.omar), alarm, "on it")
    assert answer.status_code == 422
    assert 'value="on it"' in text(answer)
    assert not Acknowledgement.objects.exists()


def test_two_acknowledgements_at_once_are_one(cast: Cast) -> None:
    alarm = fire()
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    address = f"/alerts/{alarm.pk}/acknowledge"
    fields = form_on(text(omar.get("/alerts")), address) | {"note": NOTE}
    theirs = form_on(text(ines.get("/alerts")), address) | {"note": "I am looking at it."}
    omar.post(address, fields)
    assert "This second press changed nothing" in text(omar.post(address, fields))
    late = ines.post(address, theirs)
    assert late.status_code == 409
    assert "omar has it already" in text(late)
    assert Acknowledgement.objects.count() == 1


def test_an_alarm_that_ended_meanwhile_takes_no_note_and_stands_under_ended(cast: Cast) -> None:
    alarm = fire(minutes_ago=10)
    omar = signed_in(cast.omar)
    address = f"/alerts/{alarm.pk}/acknowledge"
    fields = form_on(text(omar.get("/alerts")), address) | {"note": NOTE}
    alarms.observe(SIGNALS["duplicates"], [], timezone.now())
    answer = omar.post(address, fields)
    assert answer.status_code == 409
    assert "The alarm has ended by itself meanwhile" in text(answer)
    assert "Two refunds of one." in text(omar.get("/alerts?tab=ended"))


def test_a_page_asks_for_news_and_gets_none_until_there_is_some(cast: Cast) -> None:
    fire()
    omar = signed_in(cast.omar)
    page = text(omar.get("/alerts"))
    since = page.split("since=")[1].split('"')[0]
    assert omar.get(f"/alerts?tab=&since={since}").status_code == 204
    fire("refund_differs")
    answer = omar.get(f"/alerts?tab=&since={since}")
    assert "1 changed: show" in text(answer)


def test_what_is_watched_is_listed_with_its_figures_and_its_last_reading(cast: Cast) -> None:
    run.read_all({}, timezone.now())
    fire("unknown_past_target", "plain-main")
    page = text(signed_in(cast.mia).get("/alerts?tab=watched"))
    assert "warns above 15 min, pages above 2 h" in page
    assert "warns below 21, pages below 3" in page
    assert page.count('role="row" data-row') == len(SIGNALS)
    assert ">firing<" in page
    assert SignalRun.objects.count() >= 20


@pytest.mark.parametrize("subject", ["operation nonsense", "order ", "x y", "operation "])
def test_a_subject_without_a_page_is_shown_without_a_link(cast: Cast, subject: str) -> None:
    fire(subject=subject)
    assert signed_in(cast.omar).get("/alerts").status_code == 200
