"""The order pages: what can still be refunded and why, what changed, and what is pressed there."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation import reconciler
from refunds import approvals, dispatch, feed
from refunds.models import Operation, Order, OrderMove, Payment
from tests import build
from tests.cast import Cast
from tests.flows.console import form_on, has_form, signed_in, text
from tests.page import Page
from tests.provider_process import SandboxProcess

LIST_QUERIES_MAX = 12
ORDER_QUERIES_MAX = 18
HTMX: Any = {"HX-Request": "true"}
ODD_REFS = (
    "a/b", "/a", "a/", "a//b", "..", "../../etc/passwd", "~..", ".", "a?b=c#d", "100%", "%2F",
    "a b", "é…", "<b>&\"'", "orders", "a\nb",
)  # fmt: skip
WISH = {
    "amount": "79.00",
    "reason_code": "damaged_item",
    "reason_text": "The jug is cracked.",
    "ticket_ref": "T-551",
    "asked_by": "customer",
}


def _page(client: Client, url: str = "/orders/4821") -> Page:
    answer = client.get(url)
    return Page(url, answer.status_code, text(answer))


# The balance


@pytest.mark.django_db(transaction=True)
def test_every_term_of_the_sum_is_named_leads_to_its_refunds_and_comes_to_what_is_left(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order(captured_minor=60000)
    provider.payment("pi_4821", 60000)
    dispatch.send(str(build.authorized(cast.echo, cast.ben, amount_minor=5990).pk))
    build.external_refund("4821", 2000)
    provider.fault("drop_after_commit", times=1)
    unknown = build.authorized(cast.omar, cast.ben, cast.cleo, amount_minor=4500)
    dispatch.send(str(unknown.pk))
    build.authorized(cast.ines, cast.ben, cast.cleo, amount_minor=1100)
    page = _page(signed_in(cast.ben))
    assert "Confirmed refunds\n79.90 USD" in page.part("balance")
    assert "Unknown (held)\n45.00 USD" in page.part("balance")
    assert "Refundable now\n475.10 USD" in page.part("balance")
    assert "Counted as spent until we know." in page.part("balance")
    assert "Approved, not yet held: 11.00 USD" in page.part("balance")
    only = _page(
        signed_in(cast.ben),
        f"/orders/4821?show=unknown&payment={Payment.objects.get().pk}",
    )
    assert f"row-{unknown.pk}" in only.html
    assert only.html.count('id="row-') == 1
    refunded = _page(signed_in(cast.ben), "/orders/4821?show=refunded").part("refunds")
    assert "rf_outside" in refunded
    assert "45.00" not in refunded


@pytest.mark.django_db
def test_what_is_over_refunded_is_shown_as_it_is(cast: Cast) -> None:
    build.order(captured_minor=5000)
    build.external_refund("4821", 7000)
    page = _page(signed_in(cast.ben))
    assert "Refundable now\n-20.00 USD" in page.part("balance")
    assert "Over-refunded." in page.part("balance")
    assert not has_form(page.html, "/propose/4821")
    assert "Nothing is left to refund on payment pi_4821." in page.part("propose")


@pytest.mark.django_db
def test_a_disputed_payment_has_nothing_to_refund_and_the_others_have_a_sum_of_their_own(
    cast: Cast,
) -> None:
    build.order(state="disputed")
    build.order(payment_ref="pi_second", captured_minor=3000)
    page = _page(signed_in(cast.ben))
    assert "Disputed\n129.00 USD" in page.part("balance")
    assert "Refundable now\n0.00 USD" in page.part("balance")
    assert "Refundable now\n30.00 USD" in page.part("balance")
    assert "pi_4821 is disputed: nothing can be refunded on it." in page.part("propose")
    assert "On payment pi_second" in page.part("propose")


@pytest.mark.django_db
def test_an_order_page_costs_the_same_queries_with_one_refund_or_forty(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    build.proposed(cast.olga, amount_minor=100)
    ben, rosa = signed_in(cast.ben), signed_in(cast.rosa)
    urls = [(ben, "/orders/4821"), (ben, "/orders"), (rosa, "/orders/4821")]
    before = [_queries(client, url) for client, url in urls]
    for minor in range(101, 140):
        build.proposed(cast.olga, amount_minor=minor)
        build.external_refund("4821", minor, ref=f"rf_{minor}")
        build.order(f"other-{minor}")
    after = [_queries(client, url) for client, url in urls]
    assert after == before
    assert after[0] <= ORDER_QUERIES_MAX
    assert after[1] <= LIST_QUERIES_MAX


def _queries(client: Client, url: str) -> int:
    client.get(url)  # caches and the session's own first write are not the page's
    with CaptureQueriesContext(connection) as caught:
        assert client.get(url).status_code == 200
    return len(caught)


@pytest.mark.django_db
def test_a_poll_is_silent_until_the_balance_moves_and_then_touches_no_form(cast: Cast) -> None:
    build.order()
    ben = signed_in(cast.ben)
    page = text(ben.get("/orders/4821"))
    at = page.index("since=") + len("since=")
    since = page[at : page.index('"', at)]
    quiet = ben.get(f"/orders/4821?since={since}", headers=HTMX)
    assert (quiet.status_code, quiet.content) == (204, b"")
    build.external_refund("4821", 2900)
    told = text(ben.get(f"/orders/4821?since={since}", headers=HTMX))
    assert (
        "The refundable amount changed from 129.00 USD to 100.00 USD while this form was open."
        " Adjust the amount or close the form." in told.replace("\u202f", " ")
    )
    assert "<form" not in told
    assert text(ben.get("/orders/4821?since=torn", headers=HTMX)).count("Refundable now") == 1


# What the shop told, and what changed


@pytest.mark.django_db
def test_facts_have_a_source_and_an_age_and_old_ones_are_said_to_be_old(cast: Cast) -> None:
    facts = [{"label": "Warehouse", "value": "opened", "source": "wms", "at": _ago(days=2)}]
    build.order(return_state="received", facts=facts)
    assert "opened wms, 2 d ago" in _page(signed_in(cast.ben)).text
    assert "older than" not in _page(signed_in(cast.ben)).text
    Order.objects.update(facts_as_of=timezone.now() - timedelta(hours=3))
    assert "The facts are older than the 15 min" in _page(signed_in(cast.ben)).text


def _ago(**how: int) -> str:
    return (timezone.now() - timedelta(**how)).isoformat()


@pytest.mark.django_db
def test_links_lead_only_to_hosts_that_are_allowed_today(cast: Cast) -> None:
    with override_settings(LINK_HOSTS=("shop.example", "help.example")):
        links = {"order": "https://shop.example/4821", "ticket": "https://help.example/t/5"}
        build.order(links=links)
        html = _page(signed_in(cast.ben)).html
        assert '<a href="https://shop.example/4821" rel="noopener noreferrer"' in html
    with override_settings(LINK_HOSTS=("shop.example",)):
        html = _page(signed_in(cast.ben)).html
        assert "https://shop.example/4821" in html
        assert "help.example" not in html


@pytest.mark.django_db(transaction=True)
def test_each_version_names_its_cause_its_author_and_what_was_and_is(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order(return_state="requested")
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    dispatch.send(str(operation.pk))
    build.order(return_state="received", captured_minor=12000)
    page = _page(signed_in(cast.ben))
    history = page.part("versions")
    assert "79.00 USD set aside for" in history
    assert "by the dispatcher" in history
    assert "The order’s facts changed by shop" in history
    assert "Return\nrequested\nreceived" in history
    assert "Payment pi_4821: captured\n129.00 USD\n120.00 USD" in history
    assert f'href="/operations/{operation.pk}"' in page.html


@pytest.mark.django_db
def test_older_versions_and_refunds_go_on_where_the_page_ends(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    for minor in range(100, 153):
        build.proposed(cast.olga, amount_minor=minor)
        build.external_refund("4821", minor, ref=f"rf_{minor}")
    ben = signed_in(cast.ben)
    first = _page(ben)
    assert first.html.count('id="row-') == 50
    assert first.html.count('id="version-') == 50
    oldest = Operation.objects.order_by("-pk")[49].pk
    second = _page(ben, f"/orders/4821?show=&before={oldest}")
    assert second.html.count('id="row-') == 3
    third = _page(
        ben, f"/orders/4821?versions={OrderMove.objects.order_by('-version')[49].version}"
    )
    assert third.html.count('id="version-') == 4
    assert "Order first seen by shop" in third.part("versions")


# Finding an order


@pytest.mark.django_db
def test_an_order_with_any_reference_has_a_page_and_its_forms_lead_back_to_it(cast: Cast) -> None:
    for number, ref in enumerate(ODD_REFS):
        build.order(ref, payment_ref=f"pi_{number}")
    cleo = signed_in(cast.cleo)
    listed = _Links(text(cleo.get("/orders"))).to("/orders/")
    assert len(listed) == len(ODD_REFS)
    for url, ref in zip(listed, reversed(ODD_REFS), strict=True):
        opened = cleo.get(url)
        assert opened.status_code == 200, url
        assert opened.context["order"].ref == ref
        action = url.replace("/orders/", "/propose/", 1)
        answer = cleo.post(action, form_on(text(opened), action) | WISH)
        assert answer.status_code == 303, text(answer)
        assert Operation.objects.order_by("-pk")[0].order.ref == ref
        assert cleo.get(answer["Location"]).context["order"].ref == ref


class _Links(HTMLParser):
    """The addresses of a page, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]

    def to(self, start: str) -> list[str]:
        return [each for each in self.found if each.startswith(start)]


@pytest.mark.django_db
def test_an_order_is_found_by_itself_its_payment_customer_ticket_or_operation(cast: Cast) -> None:
    build.order("A-10482")
    build.order("A-10483", payment_ref="ch_77", customer_ref="cus_9")
    operation = build.proposed(cast.echo, "A-10483", ticket_ref="T-9")
    ben = signed_in(cast.ben)
    assert ben.get("/orders?q=A-10482")["Location"] == "/orders/A-10482"
    assert len(ben.get("/orders?q=A-104").context["rows"]) == 2
    for text_of in ("ch_7", "cus_9", "T-9", str(operation.pk)[-6:], str(operation.pk)[:13]):
        found = [order.ref for order, _ in ben.get(f"/orders?q={quote(text_of)}").context["rows"]]
        assert found == ["A-10483"], text_of
    nothing = _page(ben, "/orders?q=%25&after=1")
    assert "Nothing begins with or is called “%”." in nothing.text
    assert _page(ben, "/orders?q=a%00b").status == 200


@pytest.mark.django_db
def test_the_list_of_orders_goes_on_after_its_last_row(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    assert "No order is known." in _page(ben, "/orders").text
    made = [build.order(f"A-{number}") for number in range(53)]
    first = ben.get("/orders")
    assert [order.pk for order, _ in first.context["rows"]] == [o.pk for o in made[:2:-1]]
    second = ben.get(f"/orders?{first.context['next']}")
    assert [order.pk for order, _ in second.context["rows"]] == [o.pk for o in made[2::-1]]
    assert second.context["next"] == ""


@pytest.mark.django_db
def test_hostile_words_of_an_order_stay_words(cast: Cast) -> None:
    evil = "<script>alert(1)</script>"
    build.order(evil, lines=[{"name": evil, "amount_minor": 1}], return_state=evil[:60],
                facts=[{"label": evil, "value": evil, "source": evil}])  # fmt: skip
    build.proposed(cast.echo, evil, reason_text=evil)
    for client in (signed_in(cast.ben), signed_in(cast.rosa)):
        page = text(client.get(f"/orders/{quote(evil)}"))
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in text(signed_in(cast.ben).get("/orders"))


# Small things of the page


@pytest.mark.django_db
def test_a_rejected_refund_and_its_reason_stand_on_the_order(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    operation.refresh_from_db()
    approvals.reject(
        operation.pk, cast.cleo, reason="It never came back.", version=operation.version
    )
    row = _page(signed_in(cast.ben)).part(f"row-{operation.pk}")
    assert "Rejected by cleo: It never came back. Nothing was sent." in row
    assert "never sent" in row


@pytest.mark.django_db
def test_an_order_without_a_payment_says_so(cast: Cast) -> None:
    feed.upsert(feed.OrderSnapshot(ref="4821", currency="USD"), by="shop")
    page = _page(signed_in(cast.ben))
    assert "No captured payment yet." in page.part("balance")
    assert "No captured payment yet." in page.part("propose")


@pytest.mark.django_db(transaction=True)
def test_a_refund_that_is_found_moves_from_held_to_confirmed_without_a_new_version(
    provider: SandboxProcess, cast: Cast
) -> None:
    build.order()
    provider.payment()
    operation = build.authorized(cast.echo, cast.ben)
    provider.fault("drop_after_commit")
    dispatch.send(str(operation.pk))
    ben = signed_in(cast.ben)
    assert "Unknown (held)\n79.00 USD" in _page(ben).part("balance")
    version = Order.objects.get().version
    reconciler.look_up(operation.pk)
    balance = _page(ben).part("balance")
    assert "Confirmed refunds\n79.00 USD" in balance
    assert "Unknown (held)\n0.00 USD" in balance
    assert Order.objects.get().version == version
