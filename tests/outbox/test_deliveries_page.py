"""People see what was told to whom, what fails, and send it again where they may."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from reconciliation.models import Consequence, Delivery, DeliveryTry
from refunds.models import Operation
from review.models import RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.outbox.receiver import SECRET, make_due, receiving, tell
from tests.providers.listener import answer, http

pytestmark = pytest.mark.django_db(transaction=True)


def given_up(cast: Cast, settings: Any) -> tuple[Operation, Delivery]:
    """A message about a proposal, to colleagues, that nobody took in three days."""
    with receiving(settings, "staff", play=answer(http(b"", status="500 Oh"))):
        build.order()
        operation = build.proposed(cast.echo)
        tell()
        Delivery.objects.update(give_up_at=timezone.now())
        make_due()
        tell()
    return operation, Delivery.objects.get()


def test_without_receivers_the_page_and_the_refund_say_that_nobody_is_told(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    tell()
    omar = signed_in(cast.omar)
    page = text(omar.get("/deliveries"))
    assert "Nobody is told." in page
    assert "AFTERSEND_CALLBACKS" in page
    assert "Nobody: this installation names no receiver." in text(
        omar.get(f"/operations/{operation.pk}")
    )


def test_a_message_that_nobody_took_is_listed_with_why_and_counted_in_the_rail(
    cast: Cast, settings: Any
) -> None:
    operation, delivery = given_up(cast, settings)
    omar = signed_in(cast.omar)
    page = text(omar.get("/deliveries?tab=given_up"))
    assert "Given up: answered 500" in page
    assert "The refund of 79.00 USD on order 4821 waits for approval." in page
    assert page.count("answered 500, teller:test") == 2, "each try"
    assert str(delivery.pk) in page
    assert '<span class="n">1<span class="vh"> open</span></span>' in page
    assert str(delivery.pk) not in text(omar.get("/deliveries?tab=delivered"))
    shown = text(omar.get(f"/operations/{operation.pk}"))
    assert "<b>the staff room</b>: given up: answered 500" in shown


def test_ops_replay_it_and_it_goes_out_once_more_under_its_id(cast: Cast, settings: Any) -> None:
    _, delivery = given_up(cast, settings)
    omar = signed_in(cast.omar)
    address = f"/deliveries/{delivery.pk}/replay"
    fields = form_on(text(omar.get("/deliveries")), address)
    with receiving(settings, "staff") as receiver:
        pressed = omar.post(address, fields)
        assert pressed.status_code == 303
        assert "under the same id" in text(omar.get(pressed["Location"]))
        assert "This second press changed nothing" in text(omar.post(address, fields))
        waits = text(omar.get("/deliveries?tab=waiting"))
        assert str(delivery.pk) in waits, "what is asked for again does not fail yet"
        tell()
        (heard,) = receiver.heard
    assert heard.id == str(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.replayed_by) == ("delivered", "omar")
    assert "replayed by omar" in text(omar.get("/deliveries"))
    assert DeliveryTry.objects.filter(by="omar").count() == 1


def test_a_replay_on_an_old_page_changes_nothing(cast: Cast, settings: Any) -> None:
    _, delivery = given_up(cast, settings)
    omar, ines = signed_in(cast.omar), signed_in(cast.ines)
    address = f"/deliveries/{delivery.pk}/replay"
    old = form_on(text(omar.get("/deliveries")), address)
    ines.post(address, form_on(text(ines.get("/deliveries")), address))
    answer = omar.post(address, old)
    assert answer.status_code == 409
    assert "Not recorded." in text(answer)
    assert Delivery.objects.get().replayed_by == "ines"


def test_a_lead_reads_and_has_no_replay(cast: Cast, settings: Any) -> None:
    _, delivery = given_up(cast, settings)
    cleo = signed_in(cast.cleo)
    page = text(cleo.get("/deliveries"))
    address = f"/deliveries/{delivery.pk}/replay"
    assert not has_form(page, address)
    fields = form_on(page, "/sign-out")
    assert cleo.post(address, fields).status_code == 403
    assert RefusedAct.objects.get().act == "replay"


def test_what_is_not_turned_into_messages_yet_is_said(cast: Cast, settings: Any) -> None:
    settings.CALLBACKS, settings.CALLBACK_SECRETS = {"staff": "https://chat.example/"}, (SECRET,)
    build.order()
    build.proposed(cast.echo)
    assert Consequence.objects.filter(expanded_at=None).count() == 1
    page = text(signed_in(cast.omar).get("/deliveries"))
    assert "<b>1</b> that happened is not turned into messages yet" in page
    assert "Told: the staff room." in page


def test_pages_of_the_list_follow_each_other(cast: Cast) -> None:
    now = timezone.now()
    for number in range(51):
        Delivery.objects.create(
            pk=f"00000000-0000-4000-8000-{number:012}",
            kind="staff_message",
            receiver="staff",
            due_at=now,
            give_up_at=now,
        )
    omar = signed_in(cast.omar)
    first = text(omar.get("/deliveries?tab=waiting"))
    assert first.count('role="row" id="row-') == 50
    assert "Next 50" in first
    follow = first.split('class="btn" href="')[1].split('"')[0].replace("&amp;", "&")
    assert text(omar.get(f"/deliveries{follow}")).count('role="row" id="row-') == 1
    assert omar.get("/deliveries?after=nonsense~x").status_code == 404


def test_people_name_their_address_themselves_and_only_one_of_the_house(
    cast: Cast, settings: Any
) -> None:
    ben = signed_in(cast.ben)
    assert "E-mail for messages" not in text(ben.get("/profile")), "nothing would be sent"
    settings.WRITES_MAIL, settings.DEFAULT_FROM_EMAIL = True, "refunds@shop.example"
    for wrong in ("ben", "ben@elsewhere.example", "ben@shop.example\nBcc: x@shop.example"):
        refused = ben.post("/profile/change", typed(ben, email=wrong))
        assert refused.status_code == 422
        assert "Use an address at shop.example, or leave it empty." in text(refused)
    assert ben.post("/profile/change", typed(ben, email="ben@shop.example")).status_code == 303
    build.order()
    build.proposed(cast.echo)
    tell()
    assert [message.to for message in mail.outbox] == [["ben@shop.example"]]
    assert ben.post("/profile/change", typed(ben, email="")).status_code == 303
    cast.ben.refresh_from_db()
    assert cast.ben.email == ""


def typed(client: Client, **more: str) -> dict[str, str]:
    fields = form_on(text(client.get("/profile")), "/profile/change")
    return fields | {"theme": "", "time_zone": "UTC"} | more
