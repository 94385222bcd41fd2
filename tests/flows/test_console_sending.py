"""Stopping is easy and starting again takes another person; every page says what is stopped."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from refunds.ledger import sending
from refunds.models import Person, ProviderAccount, SendingStop
from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.flows.finding import accepted

pytestmark = pytest.mark.django_db
REASON = "Answers do not fit our requests."


def _press(client: Client, address: str, **more: str) -> Any:
    return client.post(address, form_on(text(client.get("/sending")), address) | more)


def _stopped_by(person: Person) -> Client:
    client = signed_in(person)
    assert _press(client, "/sending/stop", reason=REASON).status_code == 303
    return client


@pytest.mark.parametrize("address", ["/sending", "/sending/plain-main"])
def test_a_poll_says_that_something_changed_and_moves_nothing(cast: Cast, address: str) -> None:
    mia = signed_in(cast.mia)
    page = text(mia.get(address))
    poll = re.search(r'hx-get="([^"]+since=[^"]*)"', page)
    assert poll is not None
    assert 'data-poll="15"' in page
    assert mia.get(poll[1]).status_code == 204
    sending.pause("plain-main", kind="outage", reason="It does not answer.", by="dispatcher")
    moved = text(mia.get(poll[1]))
    assert "1 changed: show" in moved
    assert f'href="{address}"' in moved
    assert "<table" not in moved


@pytest.mark.parametrize("name", ["ben", "omar", "ines", "fay", "adam"])
def test_one_press_stops_everything_and_every_page_says_so(cast: Cast, name: str) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    client = _stopped_by(cast.people[name])
    assert SendingStop.objects.get().stopped_by == name
    for page in ("/", "/approvals", "/unknown", "/sending", f"/operations/{operation.pk}"):
        shown = text(client.get(page))
        assert "All sending is stopped" in shown, page
        assert REASON in shown, page


def test_a_stop_without_a_reason_is_asked_for_one_and_the_text_is_kept(cast: Cast) -> None:
    omar = signed_in(cast.omar)
    answer = _press(omar, "/sending/stop", reason="odd")
    assert answer.status_code == 422
    assert 'value="odd"' in text(answer)
    assert not SendingStop.objects.exists()


def test_a_second_press_of_the_stop_is_the_same_stop(cast: Cast) -> None:
    omar = signed_in(cast.omar)
    fields = form_on(text(omar.get("/sending")), "/sending/stop") | {"reason": REASON}
    omar.post("/sending/stop", fields)
    again = omar.post("/sending/stop", fields)
    assert again.status_code == 200
    assert "This second press changed nothing" in text(again)
    assert SendingStop.objects.count() == 1


def test_a_stop_pressed_on_an_old_page_still_stops(cast: Cast) -> None:
    omar, ben = signed_in(cast.omar), signed_in(cast.ben)
    fields = form_on(text(omar.get("/sending")), "/sending/stop") | {"reason": REASON}
    _press(ben, "/sending/stop", reason="Seen by ben as well.")
    assert omar.post("/sending/stop", fields).status_code == 303
    assert SendingStop.objects.filter(ended_at=None).count() == 1


def test_whoever_stopped_it_cannot_start_it_again(cast: Cast) -> None:
    ines = _stopped_by(cast.ines)
    page = text(ines.get("/sending"))
    assert "You stopped it. Another person" in page
    assert not has_form(page, "/sending/start")
    olga = signed_in(cast.olga)
    fields = form_on(text(olga.get("/sending")), "/sending/start")
    own = fields | {"csrfmiddlewaretoken": ines.cookies["csrftoken"].value}
    assert ines.post("/sending/start", own).status_code == 403
    assert RefusedAct.objects.get().code == "started_by_the_same_person"
    assert olga.post("/sending/start", fields).status_code == 303
    assert not SendingStop.objects.filter(ended_at=None).exists()
    assert "All sending is stopped" not in text(olga.get("/"))


def test_a_lead_may_stop_and_not_start(cast: Cast) -> None:
    _stopped_by(cast.omar)
    ben = signed_in(cast.ben)
    assert not has_form(text(ben.get("/sending")), "/sending/start")
    fields = {"csrfmiddlewaretoken": ben.cookies["csrftoken"].value}
    assert ben.post("/sending/start", fields).status_code == 403
    assert RefusedAct.objects.get().act == "start"


def test_one_account_is_paused_by_an_ops_lead_and_resumed_by_another_person(cast: Cast) -> None:
    ines, olga = signed_in(cast.ines), signed_in(cast.olga)
    assert _press(ines, "/sending/plain-main/pause", reason=REASON).status_code == 303
    paused = ProviderAccount.objects.get(name="plain-main")
    assert (paused.pause_kind, paused.paused_by) == ("person", "ines")
    assert "plain-main is paused" in text(ines.get("/"))
    assert "You paused it; another person resumes it." in text(ines.get("/sending"))
    assert _press(olga, "/sending/plain-main/resume").status_code == 303
    paused.refresh_from_db()
    assert paused.pause_kind == ""


def test_a_pause_that_is_another_one_by_now_is_not_ended_by_an_old_page(cast: Cast) -> None:
    olga = signed_in(cast.olga)
    sending.pause("plain-main", kind="person", reason=REASON, by="ines")
    fields = form_on(text(olga.get("/sending")), "/sending/plain-main/resume")
    sending.resume("plain-main", by="olga")
    sending.pause("plain-main", kind="credential", reason="401", by="dispatcher")
    answer = olga.post("/sending/plain-main/resume", fields)
    assert answer.status_code == 409
    assert "was paused anew while you looked" in text(answer)
    assert ProviderAccount.objects.get(name="plain-main").pause_kind == "credential"


def test_an_account_that_is_not_ours_is_a_404(cast: Cast) -> None:
    ines = signed_in(cast.ines)
    ines.get("/sending")
    fields = {"csrfmiddlewaretoken": ines.cookies["csrftoken"].value, "reason": REASON}
    assert ines.post("/sending/nobody/pause", fields).status_code == 404


def test_the_page_says_what_automation_may_do_with_each_account(cast: Cast) -> None:
    page = text(signed_in(cast.mia).get("/sending"))
    assert "has no lookup; never sends again by itself; a lost answer needs a person" in page
    assert "never sends again by itself; never concludes that nothing happened" in page
    assert "sends again while the same key surely lives; what is proved absent is sent" in page
    accepted(cast, "stripe-main", "flight_max", 3600, "resend")
    page = text(signed_in(cast.mia).get("/sending"))
    assert "surely lives, by what two people accepted; never concludes" in page
    assert not has_form(page, "/sending/stop")


def test_each_press_is_answered_with_what_was_recorded(cast: Cast) -> None:
    build.order()
    ines, adam = signed_in(cast.ines), signed_in(cast.adam)
    said: tuple[tuple[Client, str, dict[str, str], str], ...] = (
        (ines, "/sending/plain-main/pause", {"reason": REASON}, "you paused plain-main."),
        (adam, "/sending/plain-main/resume", {}, "you resumed plain-main."),
        (ines, "/sending/stop", {"reason": REASON}, "you stopped all sending."),
        (adam, "/sending/start", {}, "you started sending again."),
    )
    for client, address, typed, words in said:
        answer = _press(client, address, **typed)
        assert answer.status_code == 303, address
        assert words in text(client.get(answer["Location"])), address
        assert words not in text(signed_in(cast.omar).get(answer["Location"])), "another reader's"
