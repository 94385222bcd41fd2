"""An approval that the order has moved past: it is nobody's yes, on no page and in no verb."""

from __future__ import annotations

import re

import pytest

from refunds import approvals
from refunds.domain import states
from refunds.models import Approval, Operation
from tests import build
from tests.cast import Cast
from tests.flows.console import has_form, opened, press, signed_in, text, url

pytestmark = pytest.mark.django_db(transaction=True)
GONE = "ben’s approval was for version 1 and no longer counts"


@pytest.fixture
def overtaken(cast: Cast) -> Operation:
    """Two leads are needed; ben approved, and then a refund from elsewhere moved the order."""
    build.order(captured_minor=90_000)
    operation = build.proposed(cast.omar, amount_minor=50_000)
    assert press(signed_in(cast.ben), operation, "approve").status_code == 303
    build.external_refund("4821", 3000)
    return operation


def row_of(page: str, operation: Operation) -> str:
    found = re.search(rf'<tr role="row" id="row-{operation.pk}".*?</tr>', page, re.DOTALL)
    assert found is not None
    return found.group()


def test_the_list_marks_it_stale_and_counts_nobody(cast: Cast, overtaken: Operation) -> None:
    cleo = signed_in(cast.cleo)
    row = row_of(text(cleo.get("/approvals")), overtaken)
    assert GONE in row
    assert "tier 2: two leads" in row
    assert "Approved by ben" not in row
    assert f"row-{overtaken.pk}" not in text(cleo.get("/approvals?tab=second"))


def test_the_second_lead_reads_what_changed_and_is_the_first_again(
    cast: Cast, overtaken: Operation
) -> None:
    page = opened(signed_in(cast.cleo), overtaken)
    assert GONE in page
    assert "a refund made elsewhere was seen" in page
    assert "Yours would be the last" not in page
    assert "Your approval will be the first of two" in page
    assert 'name="order_version" value="2"' in page


def test_the_answer_says_whose_approval_went(cast: Cast, overtaken: Operation) -> None:
    cleo = signed_in(cast.cleo)
    answer = press(cleo, overtaken, "approve")
    assert GONE in text(cleo.get(answer["Location"]))
    overtaken.refresh_from_db()
    assert overtaken.state == states.AWAITING_APPROVAL


def test_whoever_gave_it_has_the_button_and_decides_anew(cast: Cast, overtaken: Operation) -> None:
    ben = signed_in(cast.ben)
    assert has_form(opened(ben, overtaken), url(overtaken, "approve"))
    assert f"row-{overtaken.pk}" in text(ben.get("/approvals"))
    assert overtaken.pk.hex in text(ben.get("/"))
    assert press(ben, overtaken, "approve").status_code == 303
    assert press(signed_in(cast.cleo), overtaken, "approve").status_code == 303
    overtaken.refresh_from_db()
    assert overtaken.state == states.AUTHORIZED
    assert [each.order_version for each in Approval.objects.filter(round=overtaken.round)] == [2, 2]


def test_a_dead_approval_of_a_lead_takes_no_role_from_another(cast: Cast) -> None:
    build.order(captured_minor=900_000)
    operation = build.proposed(cast.omar, amount_minor=500_000)
    approvals.approve(operation.pk, cast.ben, build.shown(operation))
    build.external_refund("4821", 3000)
    first = approvals.approve(operation.pk, cast.cleo, build.shown(operation))
    assert (first.complete, first.approval.as_role) == (False, "lead")
    assert approvals.approve(operation.pk, cast.fay, build.shown(operation)).complete
