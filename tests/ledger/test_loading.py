"""Rows that are taken as they were read are objects like any other."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from refunds.models import Order, Payment
from tests import build

pytestmark = pytest.mark.django_db


def test_a_row_that_was_read_is_saved_where_it_came_from() -> None:
    build.order("4823")
    read = Order.objects.get(ref="4823")
    read.customer_ref = "cus_9"
    read.save(update_fields=["customer_ref"])
    assert Order.objects.filter(ref="4823", customer_ref="cus_9").count() == 1
    assert read == Order.objects.get(ref="4823")


def test_a_column_that_was_not_read_is_asked_for_when_it_is_used() -> None:
    build.order("4823")
    read = Order.objects.only("ref").get(ref="4823")
    assert "version" in read.get_deferred_fields()
    with CaptureQueriesContext(connection) as asked:
        assert read.version == 1
        assert read.version == 1
    assert len(asked) == 1


def test_what_was_read_with_a_row_is_not_asked_for_again() -> None:
    build.order("4823")
    read = Payment.objects.select_related("order").get(order__ref="4823")
    with CaptureQueriesContext(connection) as asked:
        assert read.order.ref == "4823"
    assert len(asked) == 0
    other = build.order("4824")
    read.order = other
    assert read.order_id == other.pk
