"""Saying no, and taking back a yes before it is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from refunds.domain import states
from refunds.models import Event, Operation
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, opened, press, signed_in, text, url

pytestmark = pytest.mark.django_db
DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))


@pytest.fixture
def waiting(cast: Cast) -> Operation:
    build.order()
    return build.proposed(cast.echo)


def _state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


def test_a_short_reason_is_kept_and_named(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    answer = press(ben, waiting, "reject", reason="too short")
    assert answer.status_code == 422
    page = text(answer)
    assert "The reason needs 10 characters or more" in page
    assert ">too short</textarea>" in page
    assert _state(waiting) == states.AWAITING_APPROVAL


def test_a_rejection_keeps_its_reason_for_the_proposer(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    answer = press(ben, waiting, "reject", reason="The item never came back.")
    assert answer.status_code == 303
    assert "Rejected. Nothing was sent." in text(ben.get(answer["Location"]))
    assert Event.objects.get(event="rejected").detail == {
        "reason": "The item never came back.",
        "code": "other",
    }
    page = text(ben.get(f"/operations/{waiting.pk}"))
    assert "“The item never came back.”" in page


@DELAYED
def test_a_wrong_press_is_taken_back_before_sending(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    press(ben, waiting, "approve")
    assert "Sending starts in" in opened(ben, waiting)
    answer = press(ben, waiting, "take-back")
    assert answer.status_code == 303
    assert "Taken back. Nothing was sent." in text(ben.get(answer["Location"]))
    waiting.refresh_from_db()
    assert (waiting.state, waiting.stale_cause, waiting.round) == (
        states.AWAITING_APPROVAL,
        "taken_back",
        2,
    )
    stale = text(ben.get("/approvals?tab=stale"))
    assert str(waiting.pk) in stale


@DELAYED
def test_a_take_back_from_the_operations_page_returns_there(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    press(ben, waiting, "approve")
    answer = press(ben, waiting, "take-back", back="operation")
    assert answer["Location"].startswith(f"/operations/{waiting.pk}?done=")
    assert "Taken back at" in text(ben.get(answer["Location"]))


@DELAYED
def test_taking_back_what_was_rejected_meanwhile_says_where_it_stands(
    cast: Cast, waiting: Operation
) -> None:
    ben, cleo = signed_in(cast.ben), signed_in(cast.cleo)
    press(ben, waiting, "approve")
    fields = drawn(ben, waiting, "take-back")
    press(cleo, waiting, "take-back")
    answer = ben.post(url(waiting, "take-back"), fields)
    assert answer.status_code == 409
    assert "it is awaiting_approval already" in text(answer)
