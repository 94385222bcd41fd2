"""Search: a whole identifier opens its page, the beginning of one lists what begins with it, and
nothing is ever read without an index."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from refunds import dispatch
from refunds.models import ProviderRefund
from refunds.queries import search
from tests import build
from tests.cast import Cast
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
    assert search.find(str(operation.pk)[:7]).nothing
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
