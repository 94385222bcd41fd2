"""Search: a whole identifier opens its page, the beginning of one lists what begins with it, and
nothing is ever read without an index."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reconciliation.models import Case
from refunds import dispatch
from refunds.models import ProviderRefund
from refunds.queries import search
from review.presenters.words import short
from tests import build
from tests.cast import Cast
from tests.flows.console import signed_in, text
from tests.provider_process import SandboxProcess


@pytest.mark.django_db(transaction=True)
def test_every_whole_identifier_names_its_one_thing(cast: Cast, provider: SandboxProcess) -> None:
    order = build.order("A-10")
    provider.payment("pi_A-10", 12900)
    operation = build.authorized(cast.echo, cast.ben, order_ref="A-10")
    dispatch.send(str(operation.pk))
    made = ProviderRefund.objects.get(operation=operation)
    build.external_refund("A-10", 100, ref="rf_outside")
    for each in (str(operation.pk), str(operation.pk).upper(), operation.business_key, made.ref):
        assert search.find(f" {each} ").exact == operation, each
    assert search.find("A-10").exact == order
    assert search.find("pi_A-10").exact == order.payments.get()
    assert search.find("rf_outside").exact == order.payments.get()


@pytest.mark.django_db
def test_the_beginning_of_an_identifier_lists_each_kind(cast: Cast) -> None:
    first, second = build.order("A-10"), build.order("A-11")
    build.order("B-10")
    operation = build.proposed(cast.echo, "A-11")
    found = search.find("A-1")
    assert (found.exact, found.orders, found.operations) == (None, [second, first], [operation])
    assert [each.ref for each in search.find("pi_A").payments] == ["pi_A-10", "pi_A-11"]
    assert operation in search.find(str(operation.pk)[:13]).operations
    assert search.find(str(operation.pk)[:5]).nothing
    assert list(search.orders_like("cus_A-10")) == [first]


@pytest.mark.django_db
def test_one_text_that_names_two_things_opens_neither(cast: Cast) -> None:
    build.order("A-10", payment_ref="shared")
    build.order("A-11", account="plain-forever", payment_ref="shared")
    found = search.find("shared")
    assert found.exact is None
    assert [each.order.ref for each in found.payments] == ["A-10", "A-11"]


@pytest.mark.django_db
@pytest.mark.parametrize("odd", ["", "  ", "x" * 321, "A\x00B", "A\nB", "%", "_", "100%_"])
def test_what_no_identifier_can_be_finds_nothing(cast: Cast, odd: str) -> None:
    build.order("A-10")
    assert search.find(odd).nothing
    assert not search.orders_like(odd)


@pytest.mark.django_db
def test_no_search_reads_a_table_without_an_index(cast: Cast) -> None:
    operation = build.proposed(cast.echo, build.order("A-10").ref)
    asked = (
        "A-1",
        "A-10",
        "pi_A",
        str(operation.pk),
        str(operation.pk)[:12],
        str(operation.pk)[-6:],
        "T-20901",
        "rf_x",
        "refund:A-10:x",
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    for each in asked:
        with CaptureQueriesContext(connection) as caught:
            search.find(each)
        for query in caught.captured_queries:
            if 'FROM "provider_account"' in query["sql"]:
                continue  # a handful of rows, read whole
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {query['sql']}")
                plan = cursor.fetchone()[0]
            assert "Seq Scan" not in json.dumps(plan), (each, query["sql"])


@pytest.mark.django_db
def test_what_pages_print_of_an_id_and_a_ticket_find_the_refund(cast: Cast) -> None:
    build.order("A-10")
    build.order("A-11")
    operation = build.proposed(cast.echo, "A-10", ticket_ref="T-20901")
    build.proposed(cast.echo, "A-11")
    tail = str(operation.pk)[-6:]
    for each in (tail, tail.upper(), short(operation.pk), f"op {short(operation.pk)}", "T-20901"):
        assert search.find(each).operations == [operation], each
    assert search.find("T-2090").nothing
    page = text(signed_in(cast.cleo).get("/search", {"q": tail}))
    assert f'href="/operations/{operation.pk}"' in page


@pytest.mark.django_db
def test_a_case_is_found_by_the_reference_that_its_page_and_the_reps_show(cast: Cast) -> None:
    build.order("A-10")
    operation = build.proposed(cast.echo, "A-10")
    case = Case.objects.create(
        operation=operation,
        payment=operation.payment,
        reasons=["unresolved"],
        because="The provider shows nothing.",
        due_at=timezone.now(),
    )
    cleo, rosa = signed_in(cast.cleo), signed_in(cast.rosa)
    page = f"/operations/{operation.pk}"
    assert f"C-{case.pk}" in text(cleo.get(page))
    assert cleo.get("/search", {"q": f"c-{case.pk}"})["Location"] == page
    assert rosa.get("/status", {"order": f"C-{case.pk}"})["Location"] == "/status/A-10"
    for odd in ("C-", "C-0", "C-99999999999", "C-²"):
        assert cleo.get("/search", {"q": odd}).status_code == 200, odd


@pytest.mark.django_db
def test_the_reps_box_is_answered_on_the_status_page(cast: Cast) -> None:
    build.order("A-10")
    build.order("A-11")
    operation = build.proposed(cast.echo, "A-10", ticket_ref="T-1")
    build.proposed(cast.echo, "A-11", ticket_ref="T-1")
    rosa = signed_in(cast.rosa)
    for each in ("A-10", str(operation.pk)[-6:]):
        answer = rosa.get("/search", {"q": each}, follow=True)
        assert answer.redirect_chain[-1][0] == "/status/A-10", each
    for unknown in ("nowhere", "T-1"):
        page = text(rosa.get("/search", {"q": unknown}, follow=True))
        assert f'value="{unknown}"' in page
        assert f"There is no order “{unknown}” here" in page
