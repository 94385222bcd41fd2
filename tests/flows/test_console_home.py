"""My work: what needs its reader, in which order, and what it says while others work on it too."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone

from reconciliation import heartbeat, reconciler
from reconciliation.models import Case
from refunds import approvals, dispatch
from refunds.models import Operation, Person
from tests import build
from tests.cast import Cast
from tests.flows.console import press, signed_in, text
from tests.provider_process import SandboxProcess

HTMX: Any = {"HX-Request": "true"}


def block(page: str, name: str) -> str:
    """The words of one list of the page, or nothing where it is not there."""
    found = re.search(
        rf'<section class="block" aria-labelledby="{name}-h">.*?</section>', page, re.S
    )
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split()) if found else ""


def refs(page: str, name: str) -> list[str]:
    """The orders of one list, in its order."""
    found = re.search(
        rf'<section class="block" aria-labelledby="{name}-h">.*?</section>', page, re.S
    )
    cells = r'class="c-order"><a href="[^"]+"(?: data-open)?>([^<]+)</a>'
    return re.findall(cells, found[0]) if found else []


def proposed(by: Any, ref: str, minor: int = 500, **more: Any) -> Operation:
    build.order(ref, captured_minor=90_000)
    return build.proposed(by, ref, minor, **more)


def home(person: Person) -> str:
    return text(signed_in(person).get("/"))


@pytest.mark.django_db
def test_a_lead_sees_what_they_could_decide_and_not_their_own(cast: Cast) -> None:
    proposed(cast.echo, "A-1")
    proposed(cast.foxtrot, "B-1")
    proposed(cast.ada, "C-1")
    second = proposed(cast.omar, "D-1", 15_000)
    approvals.approve(second.pk, cast.ben, build.shown(second))
    ada = home(cast.ada)
    assert refs(ada, "mine") == ["B-1", "D-1"]
    assert "Approved by ben at" in block(ada, "mine")
    assert "1 more person must approve" in block(ada, "mine")
    assert refs(home(cast.ben), "mine") == ["A-1", "C-1"]
    assert refs(home(cast.fay), "mine") == []


@pytest.mark.django_db(transaction=True)
def test_what_went_stale_or_was_refused_returns_to_whoever_it_was_of(
    cast: Cast, provider: SandboxProcess
) -> None:
    build.order("S-1")
    provider.payment("pi_S-1")
    stale = build.authorized(cast.echo, cast.ben, order_ref="S-1")
    build.external_refund("S-1", 2000)
    assert dispatch.send(str(stale.pk)) == "lapsed"
    refused = proposed(cast.ben, "R-1")
    approvals.reject(
        refused.pk, cast.cleo, reason="The parcel never came back.", version=refused.version
    )
    ben = home(cast.ben)
    assert refs(ben, "back") == ["R-1", "S-1"]
    assert "Your approval no longer applies: the order changed" in block(ben, "back")
    assert "Rejected by cleo: The parcel never came back." in block(ben, "back")
    assert refs(home(cast.cleo), "back") == []


@pytest.mark.django_db
def test_seven_rows_are_shown_and_the_rest_is_counted(cast: Cast) -> None:
    for number in range(9):
        proposed(cast.foxtrot, f"B-{number}", 100 + number)
    page = home(cast.cleo)
    assert refs(page, "mine") == [f"B-{number}" for number in range(7)]
    assert "Waiting for my approval 7+" in block(page, "mine")
    assert "All that wait" in block(page, "mine")
    assert "<title>(7+) My work" in page


@pytest.mark.django_db
def test_what_expires_soon_is_marked(cast: Cast) -> None:
    operation = proposed(cast.foxtrot, "B-1")
    soon = timezone.now() + timedelta(minutes=12, seconds=30)
    Operation.objects.filter(pk=operation.pk).update(expires_at=soon, due_at=soon)
    assert "expiring: 12 min left" in block(home(cast.cleo), "mine")


@pytest.mark.django_db(transaction=True)
def test_cases_are_for_those_who_work_on_them_and_numbers_for_those_who_oversee(
    cast: Cast, provider: SandboxProcess
) -> None:
    for ref, fault, account in (
        ("U-1", "drop_after_commit", "plain-blind"),
        ("T-1", "execute_twice", "plain-nokeys"),
    ):
        build.order(ref, account=account)
        provider.payment(f"pi_{ref}", account=account)
        operation = build.authorized(cast.echo, cast.ben, order_ref=ref, amount_minor=500)
        provider.fault(fault, account=account)
        dispatch.send(str(operation.pk))
        reconciler.look_up(operation.pk)
    held = Case.objects.get(operation__order__ref="U-1")
    Case.objects.filter(pk=held.pk).update(owner=cast.omar)
    omar = home(cast.omar)
    assert refs(omar, "held") == ["U-1"]
    assert refs(omar, "cases") == ["T-1"]
    assert "nobody" in block(omar, "cases")
    mia = home(cast.mia)
    assert refs(mia, "oldest") == ["U-1"]
    assert refs(mia, "twice") == ["T-1"]
    assert not refs(mia, "mine")
    assert not refs(home(cast.ben), "held") + refs(home(cast.ben), "oldest")


@pytest.mark.django_db
def test_a_rep_sees_what_they_asked_for_and_where_to_look_up_an_order(cast: Cast) -> None:
    proposed(cast.rosa, "R-1")
    proposed(cast.echo, "A-1")
    page = home(cast.rosa)
    assert refs(page, "asked") == ["R-1"]
    assert 'action="/status"' in page
    assert 'href="/status/R-1"' in page
    assert "Waiting for my approval" not in page
    assert 'href="/approvals' not in page


@pytest.mark.django_db
def test_an_empty_page_says_when_the_queue_and_the_checker_were_looked_at(cast: Cast) -> None:
    assert "we do not know when the automatic checker last ran" in home(cast.ben)
    heartbeat.beat(timezone.now())
    page = " ".join(re.sub(r"<[^>]+>", "", home(cast.ben)).split())
    assert "Nothing needs you. Last queue check" in page
    assert "; automatic checker last ran" in page
    cache.clear()


def _poll(client: Client, page: str) -> Any:
    found = re.search(r'hx-get="(/\?since=[^"]*)"', page)
    assert found is not None
    return client.get(found[1], headers=HTMX)


@pytest.mark.django_db
def test_a_poll_names_who_handled_a_row_and_leaves_every_other_where_it_is(cast: Cast) -> None:
    first, second = proposed(cast.foxtrot, "B-1"), proposed(cast.foxtrot, "B-2")
    cleo = signed_in(cast.cleo)
    page = text(cleo.get("/"))
    assert _poll(cleo, page).status_code == 204
    press(signed_in(cast.ada), first, "approve")
    told = text(_poll(cleo, page))
    assert re.search(
        rf'id="handled-mine-{first.pk.hex}" hx-swap-oob="true">Handled by ada at \d\d:\d\d', told
    )
    assert second.pk.hex not in told
    assert "<title>(1) My work" in told
    assert '<span class="n" id="count-mine" hx-swap-oob="true">1</span>' in told
    assert "<tr" not in told
    assert "count-back" not in told  # that list is not on the page


@pytest.mark.django_db
def test_a_poll_that_we_did_not_write_is_a_poll_of_other_rows(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    for since in ("x", "mine-zz.1", "held-case-x.1", "~~", "mine-" + "z" * 32 + ".1"):
        assert ben.get("/", {"since": since}, headers=HTMX).status_code in (200, 204)


@pytest.mark.django_db(transaction=True)
def test_a_list_that_cannot_be_read_says_so_and_spoils_no_other(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    proposed(cast.foxtrot, "B-1")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE proposal RENAME TO proposal_away")
    try:
        page = home(cast.cleo)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE proposal_away RENAME TO proposal")
    assert refs(page, "mine") == ["B-1"]
    assert "This list could not be read at" in block(page, "back")
    assert "the list back of the first page could not be read" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("rosa", ["h my work, r status, p profile"], ["a approvals", "tick the row", "k agents"]),
        ("cleo", ["a approvals", "tick the row"], ["k agents"]),
        ("omar", ["u unknown", "open the form that proposes"], ["tick the row"]),
        ("adam", ["k agents"], ["open the form that proposes", "tick the row"]),
    ],
)
def test_the_help_lists_the_keys_that_do_something_for_its_reader(
    cast: Cast, name: str, has: list[str], lacks: list[str]
) -> None:
    page = text(signed_in(cast.people[name]).get("/"))
    keys = page.split('<dialog id="keys"')[1].split("</dialog>")[0]
    assert [words for words in has if words not in keys] == []
    assert [words for words in lacks if words in keys] == []


@pytest.mark.django_db(transaction=True)
def test_the_count_of_doubts_adds_up_and_says_which_cases_are_about_none(
    cast: Cast, provider: SandboxProcess
) -> None:
    provider.payment()
    build.order()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_before_commit")
    dispatch.send(str(operation.pk))
    omar = signed_in(cast.omar)
    page = text(omar.get("/"))
    assert "1 checked automatically, 0 with a case for people" in page
    assert "in all" not in page
    Case.objects.create(
        payment=operation.payment,
        reasons=["external"],
        because="A refund that nobody here asked for.",
        due_at=timezone.now(),
    )
    assert "1 case in all: also about refunds whose outcome is known" in text(omar.get("/"))
