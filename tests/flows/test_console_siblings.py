"""Refunds of one order side by side: what the page lists is what a press is bound to."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from refunds import dispatch, withdrawal
from refunds.domain import states
from refunds.models import Approval, Operation, Payment
from refunds.proposal import Caller
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, opened, press, signed_in, text, url
from tests.ledger.stage import run
from tests.provider_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))
PARCELS = (1200, 1850, 725)


@pytest.fixture
def parcels(provider: SandboxProcess, cast: Cast) -> list[Operation]:
    provider.payment()
    build.order()
    return [build.proposed(cast.omar, amount_minor=minor) for minor in PARCELS]


def sent(*operations: Operation) -> list[str]:
    """The ten seconds are over: what sending each of them led to."""
    run("UPDATE operation SET not_before = NULL WHERE state = 'authorized'")
    return [dispatch.send(str(each.pk)) for each in operations]


@DELAYED
def test_three_pages_drawn_first_and_pressed_in_turn_are_three_refunds_in_the_book(
    provider: SandboxProcess, cast: Cast, parcels: list[Operation]
) -> None:
    ben = signed_in(cast.ben)
    forms = [drawn(ben, parcel, "approve") for parcel in parcels]
    answers = [
        ben.post(url(parcel, "approve"), form) for parcel, form in zip(parcels, forms, strict=True)
    ]
    assert [answer.status_code for answer in answers] == [303, 303, 303]
    assert sent(*parcels) == ["confirmed"] * 3
    assert sorted(each["amount_minor"] for each in provider.refunds()) == sorted(PARCELS)
    assert not Operation.objects.exclude(state=states.SUCCEEDED).exists()
    assert Payment.objects.get().refunded_minor == sum(PARCELS)


@DELAYED
def test_a_fourth_refund_from_outside_makes_all_three_stale_and_the_page_says_why(
    provider: SandboxProcess, cast: Cast, parcels: list[Operation]
) -> None:
    ben = signed_in(cast.ben)
    for parcel in parcels:
        assert press(ben, parcel, "approve").status_code == 303
    build.external_refund("4821", 500)
    assert sent(*parcels) == ["lapsed"] * 3
    assert provider.refunds() == []
    page = opened(ben, parcels[0])
    assert "the order changed" in page
    assert "a refund made elsewhere was seen" in page


def test_a_press_on_a_list_that_has_grown_or_shrunk_is_refused(
    provider: SandboxProcess, cast: Cast, parcels: list[Operation]
) -> None:
    ben = signed_in(cast.ben)
    before = drawn(ben, parcels[0], "approve")
    newcomer = build.proposed(cast.omar, amount_minor=300)
    grown = ben.post(url(parcels[0], "approve"), before)
    assert grown.status_code == 409
    before = drawn(ben, parcels[0], "approve")
    withdrawal.withdraw(newcomer.pk, by=Caller(person=cast.omar))
    shrunk = ben.post(url(parcels[0], "approve"), before)
    assert shrunk.status_code == 409
    assert not Approval.objects.exists()
    assert press(ben, parcels[0], "approve").status_code == 303


def test_a_press_after_a_sibling_took_its_money_is_refused(
    provider: SandboxProcess, cast: Cast, parcels: list[Operation]
) -> None:
    ben = signed_in(cast.ben)
    before = drawn(ben, parcels[0], "approve")
    assert press(ben, parcels[1], "approve").status_code == 303
    assert sent(parcels[1]) == ["confirmed"]
    late = ben.post(url(parcels[0], "approve"), before)
    assert late.status_code == 409
    assert "changed from version 1 to 2" in text(late)
    assert press(ben, parcels[0], "approve").status_code == 303
    assert sent(parcels[0]) == ["confirmed"]


def test_the_list_names_every_refund_that_has_not_ended_however_old(
    provider: SandboxProcess, cast: Cast, parcels: list[Operation]
) -> None:
    """Fifty newer ones that ended hide none that may still take money."""
    for number in range(52):
        ended = build.proposed(cast.omar, amount_minor=10 + number)
        withdrawal.withdraw(ended.pk, by=Caller(person=cast.omar))
    newest = build.proposed(cast.omar, amount_minor=4321)
    page = opened(signed_in(cast.ben), newest)
    table = re.search(r'<table class="others">.*?</table>', page, re.DOTALL)
    assert table is not None
    for parcel in parcels:
        assert f"/operations/{parcel.pk}" in table.group()
    assert press(signed_in(cast.ben), newest, "approve").status_code == 303
    assert set(Approval.objects.get().shown_operations) == {each.pk for each in parcels}


def test_a_colleagues_first_of_two_approvals_is_named_and_the_press_changes_nothing(
    cast: Cast,
) -> None:
    build.order(captured_minor=90_000)
    large = build.proposed(cast.omar, amount_minor=50_000)
    ben, cleo = signed_in(cast.ben), signed_in(cast.cleo)
    before = drawn(ben, large, "approve")
    assert press(cleo, large, "approve").status_code == 303
    late = ben.post(url(large, "approve"), before)
    assert late.status_code == 409
    assert re.search(
        r"cleo approved this at \d\d:\d\d:\d\d UTC\. Your press changed nothing\.", text(late)
    )
    assert Approval.objects.get().approver == cast.cleo
    assert press(ben, large, "approve").status_code == 303
    large.refresh_from_db()
    assert large.state == states.AUTHORIZED


@pytest.mark.parametrize("how", ["approve", "reject", "withdraw"])
def test_who_came_first_is_named_with_what_they_did(cast: Cast, how: str) -> None:
    build.order()
    waiting = build.proposed(cast.omar)
    ben, cleo = signed_in(cast.ben), signed_in(cast.cleo)
    before = drawn(ben, waiting, "approve")
    if how == "withdraw":
        withdrawal.withdraw(waiting.pk, by=Caller(person=cast.omar))
    else:
        press(cleo, waiting, how, reason="the customer kept it")
    late = ben.post(url(waiting, "approve"), before)
    assert late.status_code == 409
    said = {"approve": "cleo approved", "reject": "cleo rejected", "withdraw": "omar withdrew"}
    assert f"{said[how]} this at " in text(late)
