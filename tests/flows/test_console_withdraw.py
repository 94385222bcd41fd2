"""Withdrawing at the console: one's own, and as a lead anybody's, until it is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from refunds import approvals, dispatch, freezing
from refunds.domain import states
from refunds.models import Event, Operation, Order
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, opened, signed_in, text
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db
DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))


@pytest.fixture
def order() -> None:
    build.order()


def _url(operation: Operation) -> str:
    return f"/operations/{operation.pk}/withdraw"


def _page(client: Client, operation: Operation) -> str:
    return text(client.get(f"/operations/{operation.pk}"))


def _press(client: Client, operation: Operation, **more: str) -> Any:
    fields = form_on(_page(client, operation), _url(operation))
    return client.post(_url(operation), fields | more)


def test_whoever_proposed_it_withdraws_it_from_its_page(cast: Cast, order: None) -> None:
    operation = build.proposed(cast.omar)
    omar = signed_in(cast.omar)
    answer = _press(omar, operation, reason="The parcel came after all.")
    assert answer.status_code == 303
    page = text(omar.get(answer["Location"]))
    assert "Withdrawn at" in page
    assert not has_form(page, _url(operation))
    event = Event.objects.get(event="withdrawn")
    assert (event.actor_kind, event.actor) == ("caller", "person:omar")
    assert event.detail == {"reason": "The parcel came after all."}


def test_a_lead_withdraws_what_another_proposed_and_nobody_else_is_offered_it(
    cast: Cast, order: None
) -> None:
    operation = build.proposed(cast.echo)
    for person in (cast.omar, cast.fay):
        assert not has_form(_page(signed_in(person), operation), _url(operation))
    assert _press(signed_in(cast.cleo), operation).status_code == 303
    event = Event.objects.get(event="withdrawn")
    assert (event.actor_kind, event.actor) == ("lead", "person:cleo")


def test_ops_cannot_withdraw_what_another_proposed_by_a_form_of_their_own(
    cast: Cast, order: None
) -> None:
    operation = build.proposed(cast.echo)
    fields = form_on(_page(signed_in(cast.cleo), operation), _url(operation))
    omar = signed_in(cast.omar)
    fields["csrfmiddlewaretoken"] = omar.cookies["csrftoken"].value
    answer = omar.post(_url(operation), fields)
    assert answer.status_code == 403
    assert "Ask its proposer or a support lead." in text(answer)
    assert Operation.objects.get().state == states.AWAITING_APPROVAL


def test_ones_own_opened_proposal_offers_to_withdraw_and_not_to_reject(
    cast: Cast, order: None
) -> None:
    operation = build.proposed(cast.cleo)
    mine = opened(signed_in(cast.cleo), operation)
    assert has_form(mine, _url(operation))
    assert not has_form(mine, f"/approvals/{operation.pk}/reject")
    anothers = opened(signed_in(cast.ben), operation)
    assert not has_form(anothers, _url(operation))
    assert has_form(anothers, f"/approvals/{operation.pk}/reject")


def test_nobody_is_sent_to_another_lead_while_no_lead_can_approve(cast: Cast, order: None) -> None:
    operation = build.proposed(cast.cleo)
    assert "Any other support lead can." in opened(signed_in(cast.cleo), operation)
    freezing.freeze(
        "4821", cast.ines, reason="the customer disputes it", version=Order.objects.get().version
    )
    page = opened(signed_in(cast.cleo), operation)
    assert "Any other support lead can." not in page
    assert "is frozen by a person" in page


def test_a_second_press_of_the_same_form_changes_nothing(cast: Cast, order: None) -> None:
    operation = build.proposed(cast.omar)
    omar = signed_in(cast.omar)
    fields = form_on(_page(omar, operation), _url(operation))
    omar.post(_url(operation), fields)
    again = omar.post(_url(operation), fields)
    assert "This second press changed nothing." in text(again)
    assert Event.objects.filter(event="withdrawn").count() == 1


@DELAYED
def test_a_form_drawn_before_an_approval_withdraws_nothing(cast: Cast, order: None) -> None:
    operation = build.proposed(cast.omar)
    omar = signed_in(cast.omar)
    fields = form_on(_page(omar, operation), _url(operation))
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    answer = omar.post(_url(operation), fields | {"reason": "No longer wanted."})
    assert answer.status_code == 409
    page = text(answer)
    assert "it is authorized now" in page
    assert ">No longer wanted.</textarea>" in page
    assert Operation.objects.get().state == states.AUTHORIZED
    assert _press(omar, operation).status_code == 303


@pytest.mark.django_db(transaction=True)
def test_what_was_sent_already_is_not_withdrawn_and_says_so(
    cast: Cast, order: None, provider: SandboxProcess
) -> None:
    provider.payment()
    operation = build.authorized(cast.omar, cast.ben)
    omar = signed_in(cast.omar)
    fields = form_on(_page(omar, operation), _url(operation))
    assert dispatch.send(str(operation.pk)) == "confirmed"
    answer = omar.post(_url(operation), fields)
    assert answer.status_code == 409
    assert "Not withdrawn" in text(answer)
    assert len(provider.refunds()) == 1
