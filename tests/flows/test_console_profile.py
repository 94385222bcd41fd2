"""The reader's own page: times in their zone, keys and theme; and pages for what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client, RequestFactory

from refunds.models import Operation, Person
from review.models import Intent, Preference
from review.presenters.words import Clock
from review.templatetags.console import when
from review.views import errors
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, form_on, press, signed_in, text, url

pytestmark = pytest.mark.django_db


def _change(client: Client, **more: str) -> Any:
    fields = form_on(text(client.get("/profile")), "/profile/change")
    return client.post("/profile/change", fields | {"theme": "", "time_zone": "UTC"} | more)


@pytest.mark.parametrize(
    ("zone", "at", "shown"),
    [
        ("Asia/Kolkata", datetime(2026, 3, 8, 6, 59, tzinfo=UTC), "12:29 IST"),
        # Newfoundland: half an hour off, and an hour earlier in summer.
        ("America/St_Johns", datetime(2026, 3, 8, 5, 29, tzinfo=UTC), "01:59 NST"),
        ("America/St_Johns", datetime(2026, 3, 8, 5, 30, tzinfo=UTC), "03:00 NDT"),
        ("America/St_Johns", datetime(2026, 11, 1, 4, 29, tzinfo=UTC), "01:59 NDT"),
        ("America/St_Johns", datetime(2026, 11, 1, 4, 30, tzinfo=UTC), "01:00 NST"),
        ("UTC", datetime(2026, 3, 8, 5, 30, tzinfo=UTC), "05:30"),
    ],
)
def test_a_time_is_shown_in_the_readers_zone_with_its_label(
    zone: str, at: datetime, shown: str
) -> None:
    said = str(when(Clock(at, ZoneInfo(zone)), at))
    assert f">{shown}</time>" in said
    assert f'title="{at:%Y-%m-%d %H:%M:%S} UTC, 0 s ago"' in said
    assert f'data-utc="{at:%Y-%m-%dT%H:%M:%S}Z"' in said


def test_a_chosen_zone_moves_every_page(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    assert _change(ben, time_zone="Asia/Kolkata").status_code == 303
    page = text(ben.get(f"/operations/{operation.pk}"))
    moment = Operation.objects.get(pk=operation.pk).created_at
    local = moment.astimezone(ZoneInfo("Asia/Kolkata"))
    assert f">{local:%H:%M} IST</time>" in page
    assert "your time)" in page


def test_shortcuts_and_theme_are_the_persons_and_follow_them(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    assert 'data-shortcuts="on"' in text(ben.get("/"))
    _change(ben, theme="dark")
    elsewhere = signed_in(cast.ben)
    page = text(elsewhere.get("/"))
    assert 'data-shortcuts="off"' in page
    assert 'data-theme="dark"' in page
    assert "data-theme" not in text(signed_in(cast.cleo).get("/")).partition(">")[0]


@pytest.mark.parametrize(
    "wrong", [{"time_zone": "Mars/Base"}, {"time_zone": "../etc"}, {"theme": "neon"}]
)
def test_what_the_profile_does_not_offer_is_refused(cast: Cast, wrong: dict[str, str]) -> None:
    answer = _change(signed_in(cast.ben), **wrong)
    assert (answer.status_code, "not one of those offered" in text(answer)) == (422, True)
    assert Person.objects.get(pk=cast.ben.pk).time_zone == "UTC"
    assert not Preference.objects.exists()


def test_a_second_window_with_an_old_profile_is_a_conflict_and_a_repeat_is_none(
    cast: Cast,
) -> None:
    ben = signed_in(cast.ben)
    old = form_on(text(ben.get("/profile")), "/profile/change") | {"theme": ""}
    assert _change(ben, time_zone="Europe/Paris").status_code == 303
    late = ben.post("/profile/change", old | {"time_zone": "Asia/Kolkata"})
    assert (late.status_code, "in another window" in text(late)) == (409, True)
    assert Person.objects.get(pk=cast.ben.pk).time_zone == "Europe/Paris"
    fields = form_on(text(ben.get("/profile")), "/profile/change") | {"theme": ""}
    fields |= {"time_zone": "UTC"}
    ben.post("/profile/change", fields)
    again = ben.post("/profile/change", fields)
    assert "This second press changed nothing" in text(again)


def test_every_answer_names_its_request_and_error_pages_show_the_name(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    answer = ben.get("/operations/0190a5c2-7b3e-7c11-9a57-3f1e2d4c5b6a")
    name = answer["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", name)
    assert f'data-copy="{name}"' in text(answer)
    assert ben.get("/")["X-Request-Id"] != name


@contextmanager
def _every_event_meets(statement: str) -> Iterator[None]:
    """While it lasts, storing an event runs this statement first: the database itself breaks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {statement}; RETURN NEW; END $$;"
            "CREATE TRIGGER broken BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION break_it()"
        )
    try:
        yield
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION break_it CASCADE")


def _waiting(cast: Cast) -> tuple[Client, Operation]:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    ben.raise_request_exception = False
    return ben, operation


@pytest.mark.django_db(transaction=True)
def test_a_press_that_broke_says_that_nothing_was_recorded(cast: Cast) -> None:
    ben, operation = _waiting(cast)
    with _every_event_meets("RAISE EXCEPTION 'broken'"):
        answer = press(ben, operation, "reject", reason="It never came back to us.")
        assert answer.status_code == 500
        assert "Nothing was recorded. We looked this exact press up" in text(answer)
    assert not Intent.objects.exists()


def test_a_press_that_was_recorded_before_the_page_broke_says_so(cast: Cast) -> None:
    ben, operation = _waiting(cast)
    fields = drawn(ben, operation, "approve")
    assert ben.post(url(operation, "approve"), fields).status_code == 303
    page = text(errors.server_error(RequestFactory().post("/", fields)))
    assert "Your action was recorded at" in page
    assert "A second press changes nothing" in page


@pytest.mark.django_db(transaction=True)
def test_a_press_whose_database_went_away_is_looked_up_and_never_offered_again(cast: Cast) -> None:
    ben, operation = _waiting(cast)
    fields = drawn(ben, operation, "reject") | {"reason": "It never came back to us."}
    with _every_event_meets("PERFORM pg_terminate_backend(pg_backend_pid())"):
        answer = ben.post(url(operation, "reject"), fields)
    page = text(answer)
    assert answer.status_code == 503
    assert "We could not tell whether your action was recorded." in page
    assert f'href="/recorded/{fields["intent"]}"' in page
    looked = text(ben.get(f"/recorded/{fields['intent']}"))
    assert "Nothing is recorded under this press" in looked
    for each in (page, looked):
        assert not re.search(r"try again|press again|retry|resubmit", each, re.IGNORECASE)


def test_a_foreign_post_says_that_nothing_was_recorded(cast: Cast) -> None:
    ben, _ = _waiting(cast)
    fields = form_on(text(ben.get("/sending")), "/sending/stop")
    answer = ben.post("/sending/nowhere/pause", fields)
    assert answer.status_code in (403, 404)
    assert "Nothing was recorded." in text(answer)
