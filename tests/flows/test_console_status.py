"""The rep's page: words that may be said in every state, and no way to move money but proposing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver

from reconciliation import reconciler
from refunds import dispatch
from refunds.domain import say, states
from refunds.models import Approval, Operation, Order
from review.presenters import told
from review.presenters.words import Clock
from tests import build
from tests.browser.stage import Stage
from tests.cast import Cast
from tests.flows.console import form_on, signed_in, text
from tests.page import Page
from tests.provider_process import SandboxProcess

STATUS_QUERIES_MAX = 18
HTMX: Any = {"HX-Request": "true"}
NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
# What a rep may post to: signing in and out, their own account, text and settings, and proposing.
OWN = (
    "propose",
    "sign_",
    "still_here",
    "account",
    "second_factor",
    "mfa_",
    "profile",
    "draft",
    "confirm",
)


def _page(client: Client, url: str = "/status/4821") -> Page:
    answer = client.get(url)
    return Page(url, answer.status_code, text(answer))


# The words


def _about(place: str, **more: Any) -> say.About:
    """A refund that stands where this script is said."""
    places: dict[str, tuple[str, dict[str, Any]]] = {
        say.STALE: (states.AWAITING_APPROVAL, {"stale_cause": "order_changed"}),
        say.REVIEWED_AGAIN: (states.AWAITING_APPROVAL, {"stale_cause": "authority"}),
        say.NEEDS_CUSTOMER: (states.PENDING, {"needs_customer": True}),
        say.PENDING_LATE: (states.PENDING, {"since": NOW - timedelta(days=30)}),
    }
    state, facts = places.get(place, (place, {}))
    values: dict[str, Any] = {
        "state": state,
        "amount_minor": 4500,
        "currency": "EUR",
        "since": NOW - timedelta(minutes=5),
        "due_at": NOW + timedelta(days=3),
        "unknown_target_seconds": 900,
        "failed_checks": ("refund_age", "velocity"),
    }
    return say.About(**(values | facts | more))


def _block(about: say.About) -> str:
    """The say block of one refund as the page draws it."""
    clock = Clock(NOW, ZoneInfo("UTC"))
    refund = told.RefundFacts(
        id=uuid4(), state=about.state, amount_minor=about.amount_minor, currency=about.currency,
        reason="damaged_item", asked_at=NOW, ends_at=about.due_at, tier=1, stale_cause="",
        provider_ref="", last_check_at=None, next_check_at=None, has_lookup=True, entered_by="cleo",
        because="", case=None, case_ref="",
    )  # fmt: skip
    each = told.told(refund, say.say(about, NOW), clock)
    html = render_to_string("review/status.html#say", {"each": each})
    return Page("/status", 200, f"<main>{html}</main>").text


@pytest.mark.parametrize("place", say.SCRIPTS)
def test_no_place_says_what_must_never_be_said_there(place: str) -> None:
    block = _block(_about(place)).lower()
    assert "refund" in block
    for never in say.SCRIPTS[place].never:
        for words in never.words:
            assert words not in block, f"{place} says {words!r}: {block}"


def test_a_promise_that_passed_is_said_to_the_rep_above_the_words() -> None:
    block = _block(_about(states.UNKNOWN, since=NOW - timedelta(minutes=20)))
    assert "We promised the customer news by 13:55." in block
    assert "Tell them we are still checking and when we will write next." in block
    assert "We have no news yet; it takes longer than we said." in block
    assert "Next update by" not in block
    assert "We promised" not in _block(_about(states.UNKNOWN))


@pytest.mark.django_db(transaction=True)
def test_each_refund_of_the_stage_has_words_on_its_page_and_none_that_are_forbidden(
    provider: SandboxProcess, cast: Cast
) -> None:
    stage = Stage(cast, provider)
    stage.uncertain()
    stage.ended()
    rosa = signed_in(cast.rosa)
    seen = set()
    for order in Order.objects.all():
        answer = rosa.get(f"/status/{order.ref}")
        refunds = answer.context["told"]
        blocks = text(answer).split('<blockquote class="told">')[1:]
        assert len(blocks) == len(refunds)
        for each, block in zip(refunds, blocks, strict=True):
            words = unescape(block.partition("</blockquote>")[0])
            assert words == each.said.text
            for never in say.SCRIPTS[each.said.place].never:
                assert not [word for word in never.words if word in words.lower()]
            seen.add(each.refund.state)
    assert seen >= {"unknown", "pending", "submitting", "succeeded", "failed", "denied", "rejected"}


# What a rep sees beside the words


@pytest.mark.django_db(transaction=True)
def test_a_doubt_shows_who_is_on_it_and_when_it_is_looked_at(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order()
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_before_commit")
    dispatch.send(str(operation.pk))
    page = _page(signed_in(cast.rosa)).text
    assert "Who is on it\nchecked automatically" in page
    assert "Last check\nnone yet" in page
    reconciler.look_up(operation.pk)
    page = _page(signed_in(cast.rosa)).text
    assert "Last check\nnone yet" not in page
    assert f"op …{str(operation.pk)[-6:]}" in page
    assert str(operation.pk) not in text(signed_in(cast.rosa).get("/status/4821"))


@pytest.mark.django_db(transaction=True)
def test_a_case_is_named_with_its_reference(provider: SandboxProcess, cast: Cast) -> None:
    build.order(account="plain-blind")
    provider.payment(account="plain-blind")
    operation = build.authorized(cast.echo, cast.ben, amount_minor=4000)
    provider.fault("drop_after_commit", account="plain-blind")
    dispatch.send(str(operation.pk))
    reconciler.look_up(operation.pk)
    page = _page(signed_in(cast.rosa)).text
    assert "Case reference\nC-" in page
    assert "Who is on it\nnobody yet" in page
    assert "Next check\nnone: only a person can find out" in page


@pytest.mark.django_db
def test_several_refunds_stand_below_each_other_the_open_ones_first(cast: Cast) -> None:
    build.order()
    first = build.proposed(cast.echo, amount_minor=1000)
    build.order(captured_minor=500)
    denied = build.proposed(cast.echo, amount_minor=2000)
    assert denied.state == states.DENIED
    told_ids = [each.refund.id for each in signed_in(cast.rosa).get("/status/4821").context["told"]]
    assert told_ids == [first.pk, denied.pk]


@pytest.mark.django_db
def test_a_status_page_costs_the_same_queries_with_one_refund_or_thirty(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    build.proposed(cast.olga, amount_minor=100)
    rosa = signed_in(cast.rosa)
    before = _queries(rosa)
    for minor in range(101, 130):
        build.proposed(cast.olga, amount_minor=minor)
    assert _queries(rosa) == before <= STATUS_QUERIES_MAX


def _queries(client: Client) -> int:
    client.get("/status/4821")
    with CaptureQueriesContext(connection) as caught:
        assert client.get("/status/4821").status_code == 200
    return len(caught)


@pytest.mark.django_db
def test_a_poll_is_silent_until_there_is_something_else_to_say(cast: Cast) -> None:
    build.order()
    build.proposed(cast.echo, amount_minor=1000)
    rosa = signed_in(cast.rosa)
    page = text(rosa.get("/status/4821"))
    at = page.index("since=") + len("since=")
    since = page[at : page.index('"', at)]
    assert 'data-poll="60"' in page
    quiet = rosa.get(f"/status/4821?since={since}", headers=HTMX)
    assert (quiet.status_code, quiet.content) == (204, b"")
    build.proposed(cast.echo, amount_minor=2000)
    moved = text(rosa.get(f"/status/4821?since={since}", headers=HTMX))
    assert "What to say has changed." in moved
    assert moved.count('class="told"') == 2


# Nothing known


@pytest.mark.django_db
def test_nothing_is_promised_where_there_is_no_refund_or_no_order(cast: Cast) -> None:
    build.order()
    rosa = signed_in(cast.rosa)
    assert "No refund for this order." in _page(rosa).text
    assert rosa.get("/status?order=4821")["Location"] == "/status/4821"
    nothing = _page(rosa, "/status?order=nowhere")
    assert "There is no order “nowhere” here, so there is no refund for it." in nothing.text
    assert rosa.get("/status/nowhere").status_code == 404


@pytest.fixture
def lost_database() -> Iterator[None]:
    """The database's address leads nowhere until the test has ended."""
    kept = connection.settings_dict["PORT"], connection.settings_dict["HOST"]
    connection.close()
    connection.settings_dict |= {"HOST": "127.0.0.1", "PORT": "1"}
    yield
    connection.close()
    connection.settings_dict["PORT"], connection.settings_dict["HOST"] = kept


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("cast", "lost_database")
def test_without_the_database_the_rep_is_told_to_promise_nothing() -> None:
    client = Client()
    client.cookies["sessionid"] = "some-session-of-yesterday"
    answer = client.get("/status/4821")
    assert answer.status_code == 503
    assert "We cannot read the state now" in text(answer)
    assert "Do not promise anything" in text(answer)


# Who reads it, and what a rep can do


@pytest.mark.django_db
def test_the_status_page_is_for_its_roles(cast: Cast) -> None:
    build.order()
    for person, status in (
        (cast.rosa, 200), (cast.ben, 200), (cast.mia, 200), (cast.adam, 403), (cast.dora, 404),
    ):  # fmt: skip
        assert signed_in(person).get("/status/4821").status_code == status, person
    assert signed_in(cast.dora).get("/status").status_code == 403


@pytest.mark.django_db
def test_the_operation_page_shows_what_the_rep_is_told_right_now(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo, amount_minor=1000)
    said = signed_in(cast.rosa).get("/status/4821").context["told"][0].said.text
    page = _page(signed_in(cast.ben), f"/operations/{operation.pk}")
    assert said in page.part("customer")
    assert 'href="/status/4821"' in page.html


@pytest.mark.django_db
def test_no_route_lets_a_rep_act_on_a_refund_except_by_proposing(cast: Cast) -> None:
    order = build.order()
    operation = build.proposed(cast.echo)
    before = Operation.objects.values().get(), Order.objects.values().get()
    rosa = signed_in(cast.rosa)
    token = form_on(text(rosa.get("/")), "/sign-out")["csrfmiddlewaretoken"]
    walked = 0
    for name, url in _addresses(operation, order):
        if name.startswith(OWN):
            continue
        answer = rosa.post(
            url,
            {
                "csrfmiddlewaretoken": token,
                "intent": str(uuid4()),
                "obj_version": str(operation.version),
                "shown_digest": "",
                "reason": "Because a rep says so, at length.",
            },
        )
        assert answer.status_code in (302, 403, 404, 405), (name, url, answer.status_code)
        walked += 1
    assert walked > 15
    after = Operation.objects.values().get(), Order.objects.values().get()
    assert after == before
    assert not Approval.objects.exists()


def _addresses(operation: Operation, order: Order) -> Iterator[tuple[str, str]]:
    """Every named address of the console that this operation and order can fill."""
    known = {"operation_id": str(operation.pk), "order_ref": order.ref, "account": "plain-main"}
    for pattern in get_resolver("review.urls").url_patterns:
        assert isinstance(pattern, URLPattern)
        route = str(pattern.pattern)
        for name in pattern.pattern.converters:
            value = known.get(name, "1")
            start = route.index("<")
            route = route[:start] + value + route[route.index(">") + 1 :]
        yield pattern.name or "", f"/{route}"


@pytest.mark.django_db
def test_the_forms_that_a_rep_is_drawn_are_search_and_proposing(cast: Cast) -> None:
    build.order()
    build.proposed(cast.echo, amount_minor=1000)
    rosa = signed_in(cast.rosa)
    drawn = {
        form.action
        for url in ("/", "/status", "/status/4821", "/orders/4821")
        for form in _page(rosa, url).forms.values()
        if form.method == "post"
    }
    assert {action.split("?")[0] for action in drawn} <= {"/sign-out", "/propose/4821"}


@pytest.mark.django_db
def test_money_that_went_another_way_is_on_the_page_and_moves_its_poll(cast: Cast) -> None:
    build.order(captured_minor=12900)
    build.proposed(cast.echo)
    rosa = signed_in(cast.rosa)
    before = text(rosa.get("/status/4821"))
    assert "Money that went another way" not in before
    since = before.split("/status/4821?since=")[1].split('"')[0]
    build.external_refund("4821", 8000, ref="rf_desk")
    page = _page(rosa).text
    assert "80.00 USD, succeeded at the payment company rf_desk" in page
    assert "promise nothing on top of it" in page
    assert rosa.get(f"/status/4821?since={since}", headers=HTMX).status_code == 200


@pytest.mark.django_db
def test_an_order_with_only_a_refund_made_elsewhere_does_not_say_that_there_is_none(
    cast: Cast,
) -> None:
    build.order()
    build.external_refund("4821", 8000)
    assert "No refund of ours for this order." in _page(signed_in(cast.rosa)).text
