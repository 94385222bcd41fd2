"""Addresses of order pages, made for a whole list at once."""

from __future__ import annotations

import pytest
from django.urls import reverse

from review.addresses import of_orders
from tests.flows.test_console_orders import ODD_REFS


@pytest.mark.parametrize("ref", [*ODD_REFS, "4823", "R&D (2)!$'*+,;=:@~", "日本", "%41"])
def test_an_address_made_for_a_list_is_the_one_that_django_makes(ref: str) -> None:
    assert of_orders()(ref) == reverse("order", kwargs={"order_ref": ref})
