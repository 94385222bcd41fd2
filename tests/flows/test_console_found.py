"""The pages of what providers told: lists, notices and settlement, each with what to do about it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reconciliation.models import AccountSweep, Case, Notice
from refunds.models import Payment
from tests import build, told
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.page import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(cast: Cast) -> Case:
    build.order()
    return told.everything(Payment.objects.get())


def read(client: Client, url: str) -> tuple[str, str]:
    """The words of a page with single spaces, and its HTML."""
    html = text(client.get(url))
    return " ".join(Page(url, 200, html).text.split()), html


def test_each_list_says_how_far_it_was_read_and_what_it_showed(cast: Cast, case: Case) -> None:
    words, html = read(signed_in(cast.mia), "/lists")
    assert "Read to its end" in words
    assert "Never read to its end." in words
    assert "3 pages of refunds" in words
    assert "The provider answered HTTP 503. No cursor moved." in words
    assert "Without lists: plain-blind" in words
    assert "30.00 USD 4821 rf_made_elsewhere of pi_4821, plain-main" in words
    assert "11.00 USD plain-main rf_unplaced of pi_nobody" in words
    assert "129.00 USD 4821 dp_1" in words
    assert 'href="/orders/4821"' in html


def test_a_parked_notice_says_why_and_what_releases_it_and_leads_there(
    cast: Cast, case: Case
) -> None:
    mia = signed_in(cast.mia)
    words, html = read(mia, "/notices")
    assert "rf_unheard, 79.00 USD, succeeded" in words
    assert "No operation of ours has its marker or holds its reference." in words
    assert f"or what a person rules on C-{case.pk}" in words
    assert f'href="/cases/{case.pk}"' in html
    assert "Applying it failed 2 times." in words
    assert "of another mode or account" not in words
    assert "plain-main forged 3" in words
    assert (
        "It is of another mode or account, and changed nothing."
        in read(mia, "/notices?tab=applied")[0]
    )


def test_a_settlement_line_stands_beside_our_record_and_its_case(cast: Cast, case: Case) -> None:
    mia = signed_in(cast.mia)
    words, html = read(mia, "/settlement")
    assert "31.00 USD instead of 30.00 USD" in words
    assert "po_november" in words
    assert f'href="/cases/{case.pk}"' in html
    assert "rf_ours" not in words
    assert "rf_ours" in read(mia, "/settlement?verdict=match")[0]


@pytest.mark.parametrize("address", ["/lists", "/notices"])
def test_a_poll_of_them_says_what_changed(cast: Cast, case: Case, address: str) -> None:
    mia = signed_in(cast.mia)
    poll = re.search(r'hx-get="([^"]+since=[^"]*)"', text(mia.get(address)))
    assert poll is not None
    at = poll[1].replace("&amp;", "&")
    assert mia.get(at).status_code == 204
    AccountSweep.objects.filter(kind="deep").update(because="")
    Notice.objects.filter(event_id="ev_parked").update(tries=5)
    assert "1 changed: show" in text(mia.get(at))


@pytest.mark.parametrize("address", ["/lists", "/notices", "/settlement", "/notices?tab=applied"])
def test_more_rows_cost_no_more_queries(cast: Cast, case: Case, address: str) -> None:
    mia = signed_in(cast.mia)

    def queries() -> int:
        mia.get(address)
        with CaptureQueriesContext(connection) as caught:
            mia.get(address)
        return len(caught)

    before = queries()
    more: Any = {"case": case}
    for no in range(60):
        told.notice("plain-main", f"ev_{no}", **more)
    assert queries() == before <= 12
    assert ("Next 50" in text(mia.get(address))) == (address == "/notices")
