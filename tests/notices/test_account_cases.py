"""A case about payments that are not known here: it has an account, and neither order nor payment."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reconciliation import monitors
from reconciliation.cases import open_account_case
from reconciliation.models import Case
from tests import build
from tests.cast import Cast
from tests.flows.console import signed_in, text

pytestmark = pytest.mark.django_db
_WORDS = "plain-main tells of a refund of pi_9, and no such payment is known here."


def test_every_page_that_shows_cases_shows_one_without_a_payment(cast: Cast) -> None:
    case = open_account_case("plain-main", "unmatched_notice", _WORDS)
    row = f"/unknown?tab=person#row-case-{case.pk}"
    for person, page in ((cast.omar, "/unknown"), (cast.ines, "/unknown"), (cast.ines, "/")):
        shown = text(signed_in(person).get(page))
        assert "no such payment is known here" in shown, page
        assert "plain-main" in shown, page
    omar, rosa = signed_in(cast.omar), signed_in(cast.rosa)
    assert omar.get("/search", {"q": f"C-{case.pk}"})["Location"] == row
    assert rosa.get("/status", {"order": f"C-{case.pk}"}).status_code == 200


def test_an_account_has_one_open_case_and_a_new_one_after_it_was_closed() -> None:
    first = open_account_case("plain-main", "unmatched_notice", _WORDS)
    again = open_account_case("plain-main", "unmatched_notice", "Two notices tell of others.")
    assert (again.pk, again.because) == (first.pk, "Two notices tell of others.")
    assert open_account_case("plain-hooks", "unmatched_notice", _WORDS).pk != first.pk
    Case.objects.filter(pk=first.pk).update(closed_at=timezone.now())
    assert open_account_case("plain-main", "unmatched_notice", _WORDS).pk != first.pk


def test_a_case_about_nothing_cannot_be_stored() -> None:
    with pytest.raises(IntegrityError, match="case_is_about_something"), transaction.atomic():
        Case.objects.create(reasons=["external"], because="?", due_at=timezone.now())


def test_a_payment_that_is_over_refunded_gets_its_case_beside_one_of_the_account(
    cast: Cast,
) -> None:
    open_account_case("plain-main", "unmatched_notice", _WORDS)
    build.order(captured_minor=1000)
    build.external_refund("4821", 3000)
    assert monitors.over_refunded() == 1
