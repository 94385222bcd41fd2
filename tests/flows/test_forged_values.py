"""Values that no form or address of ours carries are refused in words, and nothing breaks."""

from __future__ import annotations

import pytest

from refunds.models import Agent, Approval, Operation
from tests import build
from tests.cast import PASSWORD, Cast
from tests.flows.console import drawn, form_on, signed_in, text, url

pytestmark = pytest.mark.django_db
# More digits than Python reads as a number.
LONG = "9" * 5_000


def test_a_number_too_long_to_read_approves_nothing(cast: Cast) -> None:
    build.order()
    operation = build.proposed(cast.echo)
    ben = signed_in(cast.ben)
    fields = drawn(ben, operation, "approve") | {"order_version": LONG}
    assert ben.post(url(operation, "approve"), fields).status_code == 409
    assert not Approval.objects.exists()
    assert ben.get(f"/operations/{operation.pk}?evidence={LONG}").status_code == 200


def test_a_number_too_long_to_read_proposes_nothing(cast: Cast) -> None:
    order = build.order()
    rosa = signed_in(cast.rosa)
    page = text(rosa.get("/orders/4821"))
    fields = form_on(page, "/propose/4821")
    payment = order.payments.get()
    wish = {"payment": str(payment.pk), "amount": LONG, "reason_code": "goodwill"}
    answer = rosa.post("/propose/4821", fields | wish | {f"shown-{payment.pk}": LONG})
    assert answer.status_code == 422
    assert not Operation.objects.exists()
    for since in (f"x~{LONG}.1", f"x~1.{LONG}", "x~².1"):
        assert rosa.get("/orders/4821", {"since": since}).status_code == 200


def test_a_cursor_with_a_control_character_is_no_page(cast: Cast) -> None:
    ben = signed_in(cast.ben)
    place = "\0~2026-11-29T10:00:00+00:00~01900000-0000-7000-8000-000000000000"
    assert ben.get("/approvals", {"tab": "stale", "after": place}).status_code == 404


def test_an_owner_with_a_control_character_is_nobody(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/agents")), "/agents/create")
    wish = {"name": "Golf", "owner": "ben\0", "accounts": "plain-main"}
    assert adam.post("/agents/create", fields | wish).status_code == 422
    assert not Agent.objects.filter(name="Golf").exists()


def test_what_a_confirmation_should_bring_back_may_be_forged_and_is_left_out(cast: Cast) -> None:
    adam = signed_in(cast.adam)
    fields = form_on(text(adam.get("/confirm")), "/confirm") | {"password": PASSWORD}
    answer = adam.post("/confirm", fields | {"kept": "[" * 19_000, "to": "//elsewhere.example/"})
    assert (answer.status_code, answer["Location"]) == (303, "/")
