"""Public reports about forms, on the form of this console: what a press makes, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from refunds.models import Operation, Proposal
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, signed_in, text
from tests.page import Page

pytestmark = pytest.mark.django_db
WISH = {
    "reason_code": "damaged_item",
    "reason_text": "The jug is cracked.",
    "ticket_ref": "T-551",
    "asked_by": "customer",
}


def _fields(client: Client, amount: str) -> dict[str, str]:
    """The propose form of order 4821, filled as a person does."""
    drawn = form_on(text(client.get("/orders/4821")), "/propose/4821")
    return drawn | WISH | {"amount": amount}


def _refused(client: Client, amount: str) -> Page:
    answer: Any = client.post("/propose/4821", _fields(client, amount))
    assert answer.status_code == 422, text(answer)
    assert not Operation.objects.exists()
    return Page("/propose/4821", answer.status_code, text(answer))


def test_b035_the_propose_form_posted_twice_is_one_request(cast: Cast) -> None:
    build.order()
    cleo = signed_in(cast.cleo)
    fields = _fields(cleo, "79.00")
    first, again = (cleo.post("/propose/4821", fields) for _ in range(2))
    assert first.status_code == again.status_code == 303
    assert again["Location"] == first["Location"].replace("#", "&again=1#")
    assert "This second press changed nothing." in text(cleo.get(again["Location"]))
    assert (Operation.objects.count(), Proposal.objects.count()) == (1, 1)


def test_b037_the_order_page_shows_the_second_person_the_open_request_and_takes_no_second_one(
    cast: Cast,
) -> None:
    build.order()
    first = build.proposed(cast.echo, amount_minor=12900)
    ada = signed_in(cast.ada)
    fields = _fields(ada, "129.00")
    assert f'href="/operations/{first.pk}"' in text(ada.get("/orders/4821"))
    answer: Any = ada.post("/propose/4821", fields)
    page = Page("/propose/4821", answer.status_code, text(answer))
    assert page.status == 409
    assert "An equal refund of 129.00 USD on payment pi_4821 has not ended" in page.part("result")
    assert f'href="/operations/{first.pk}"' in page.html
    assert list(Operation.objects.all()) == [first]


def test_b055_what_was_typed_into_the_form_is_exact_in_minor_units(cast: Cast) -> None:
    build.order(currency="EUR")
    cleo = signed_in(cast.cleo)
    assert cleo.post("/propose/4821", _fields(cleo, "19.99")).status_code == 303
    assert Operation.objects.get().amount_minor == 1999


@pytest.mark.parametrize("typed", ["0", "0.00", "-5", "", " ", "null", "all"])
def test_b061_the_form_reads_no_amount_as_everything(cast: Cast, typed: str) -> None:
    build.order()
    page = _refused(signed_in(cast.cleo), typed)
    assert page.form("propose-form").values["amount"] == typed


def test_b065_the_form_takes_a_point_and_refuses_a_comma_with_help(cast: Cast) -> None:
    build.order(currency="EUR")
    cleo = signed_in(cast.cleo)
    for typed in ("10,50", "1.050", "1.050,00"):
        page = _refused(cleo, typed)
        assert "79.00" in page.part("result") or "digits after the point" in page.part("result")
    assert cleo.post("/propose/4821", _fields(cleo, "10.50")).status_code == 303
    assert Operation.objects.get().amount_minor == 1050
