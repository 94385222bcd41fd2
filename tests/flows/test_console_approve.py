"""One press of one form has one effect, on what was on the screen; everything else has none."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import override_settings

from refunds import intake, withdrawal
from refunds.domain import states
from refunds.models import Approval, Event, Operation
from review.models import Intent, RefusedAct
from tests import build
from tests.cast import Cast
from tests.flows.console import drawn, has_form, opened, press, signed_in, text, url

pytestmark = pytest.mark.django_db
DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))


@pytest.fixture
def waiting(cast: Cast) -> Operation:
    build.order()
    return build.proposed(cast.echo)


def _state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


def test_a_plain_press_approves_once_and_leads_to_the_state_read_back(
    cast: Cast, waiting: Operation
) -> None:
    ben = signed_in(cast.ben)
    answer = press(ben, waiting, "approve")
    assert answer.status_code == 303
    assert _state(waiting) == states.AUTHORIZED
    given = Approval.objects.get()
    assert (given.approver, given.as_role, given.order_version) == (cast.ben, "lead", 1)
    after = text(ben.get(answer["Location"]))
    assert "Sending has not started yet" in after
    assert "not our hope" in after


def test_the_same_form_again_is_the_first_press(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "approve")
    ben.post(url(waiting, "approve"), fields)
    again = ben.post(url(waiting, "approve"), fields)
    assert again.status_code == 200
    assert "This second press changed nothing" in text(again)
    assert Approval.objects.count() == 1
    assert Event.objects.filter(event="approved").count() == 1
    assert Intent.objects.get().outcome["complete"] is True


def test_a_press_on_an_older_order_says_what_changed_and_records_nothing(
    cast: Cast, waiting: Operation
) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "approve")
    build.external_refund("4821", 2000, ref="rf_by_hand")
    answer = ben.post(url(waiting, "approve"), fields)
    assert answer.status_code == 409
    page = text(answer)
    assert "changed from version 1 to 2 after this page was drawn" in page
    assert "rf_by_hand" in page
    assert "a refund made elsewhere was seen" in page
    assert _state(waiting) == states.AWAITING_APPROVAL
    assert not Approval.objects.exists()
    assert not Intent.objects.exists()


def test_a_refund_that_moved_meanwhile_voids_the_screen_although_the_order_did_not(
    cast: Cast, waiting: Operation
) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "approve")
    build.proposed(cast.foxtrot, "4821", 1000)
    answer = ben.post(url(waiting, "approve"), fields)
    assert answer.status_code == 409
    assert "The facts you were looking at changed" in text(answer)
    assert _state(waiting) == states.AWAITING_APPROVAL
    assert not Approval.objects.exists()


def test_a_changed_fingerprint_is_refused(cast: Cast, waiting: Operation) -> None:
    answer = press(signed_in(cast.ben), waiting, "approve", fingerprint="00" * 32)
    assert answer.status_code == 409
    assert "is not what would be sent" in text(answer)
    assert not Approval.objects.exists()


def test_whoever_comes_second_is_told_who_was_first(cast: Cast, waiting: Operation) -> None:
    cleo = signed_in(cast.cleo)
    fields = drawn(cleo, waiting, "approve")
    press(signed_in(cast.ben), waiting, "approve")
    answer = cleo.post(url(waiting, "approve"), fields)
    assert answer.status_code == 409
    assert "ben approved this at " in text(answer)
    assert "Your press changed nothing" in text(answer)
    assert Approval.objects.count() == 1


def test_nobody_is_offered_or_allowed_what_their_own_agent_proposed(
    cast: Cast, waiting: Operation
) -> None:
    ada = signed_in(cast.ada)
    page = opened(ada, waiting)
    assert "it was proposed by your agent Echo. Any other support lead can." in page
    assert not has_form(page, url(waiting, "approve"))
    fields = drawn(ada, waiting, "reject") | {
        "fingerprint": bytes(waiting.fingerprint).hex(),
        "order_version": "1",
    }
    answer = ada.post(url(waiting, "approve"), fields)
    assert answer.status_code == 403
    assert not Approval.objects.exists()
    assert RefusedAct.objects.values_list(
        "person__username", "act", "object_ref", "code"
    ).get() == (
        "ada",
        "approve",
        str(waiting.pk),
        "own_proposal",
    )


def test_a_role_that_may_not_decide_is_refused_and_that_is_kept(
    cast: Cast, waiting: Operation
) -> None:
    token = drawn(signed_in(cast.ben), waiting, "approve")
    omar = signed_in(cast.omar)
    page = opened(omar, waiting)
    assert not has_form(page, url(waiting, "approve"))
    fields = token | {"csrfmiddlewaretoken": omar.cookies["csrftoken"].value}
    answer = omar.post(url(waiting, "approve"), fields)
    assert answer.status_code == 403
    assert "It needs the role support lead or finance" in text(answer)
    assert RefusedAct.objects.get().code == "role_missing"
    assert not Intent.objects.exists()


def test_a_rep_who_guesses_the_address_gets_a_404(cast: Cast, waiting: Operation) -> None:
    rosa = signed_in(cast.rosa)
    rosa.get("/")
    fields = {"csrfmiddlewaretoken": rosa.cookies["csrftoken"].value}
    assert rosa.post(url(waiting, "approve"), fields).status_code == 404


def test_a_possible_repeat_needs_the_tick_of_a_person(cast: Cast) -> None:
    build.order()
    first = build.proposed(cast.echo, amount_minor=1000)
    withdrawal.withdraw(first.pk, by=intake.Caller(agent=cast.echo))
    second = build.proposed(cast.echo, amount_minor=2000, separate_from=first.pk)
    ben = signed_in(cast.ben)
    answer = press(ben, second, "approve")
    assert answer.status_code == 422
    assert "confirm that it is a separate one" in text(answer)
    assert _state(second) == states.AWAITING_APPROVAL
    assert press(ben, second, "approve", separate_refund_confirmed="on").status_code == 303
    assert Approval.objects.get().separate_refund_confirmed


def test_two_leads_are_needed_above_the_limit_and_the_page_counts_them(cast: Cast) -> None:
    build.order(captured_minor=50000)
    operation = build.proposed(cast.omar, amount_minor=15000)
    ben = signed_in(cast.ben)
    assert "the first of two; nothing is sent until the second" in " ".join(
        opened(ben, operation).split()
    )
    answer = press(ben, operation, "approve")
    assert "Nothing is sent until the next person approves" in text(ben.get(answer["Location"]))
    assert _state(operation) == states.AWAITING_APPROVAL
    assert not has_form(opened(ben, operation), url(operation, "approve"))
    cleo = signed_in(cast.cleo)
    assert "ben approved this. Yours would be the last of 2" in opened(cleo, operation)
    press(cleo, operation, "approve")
    assert _state(operation) == states.AUTHORIZED


def test_an_approval_between_two_looks_voids_the_second_screen(cast: Cast) -> None:
    """The second press would start the sending, which its screen did not say."""
    build.order(captured_minor=50000)
    operation = build.proposed(cast.omar, amount_minor=15000)
    cleo = signed_in(cast.cleo)
    fields = drawn(cleo, operation, "approve")
    press(signed_in(cast.ben), operation, "approve")
    answer = cleo.post(url(operation, "approve"), fields)
    assert answer.status_code == 409
    assert _state(operation) == states.AWAITING_APPROVAL
    assert Approval.objects.count() == 1


@DELAYED
def test_an_approval_that_came_and_went_voids_an_older_screen(
    cast: Cast, waiting: Operation
) -> None:
    """Every fact is as it was, and still somebody took an approval back for a reason."""
    cleo, ben = signed_in(cast.cleo), signed_in(cast.ben)
    fields = drawn(cleo, waiting, "approve")
    press(ben, waiting, "approve")
    press(ben, waiting, "take-back")
    answer = cleo.post(url(waiting, "approve"), fields)
    assert answer.status_code == 409
    assert _state(waiting) == states.AWAITING_APPROVAL
    assert Approval.objects.count() == 1


def test_htmx_gets_the_row_and_the_slip_and_no_page(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "approve")
    answer = ben.post(url(waiting, "approve"), fields, headers={"HX-Request": "true"})
    page = text(answer)
    assert answer.status_code == 200
    assert "<html" not in page
    assert f'id="row-{waiting.pk}"' in page
    assert f'id="slip-{waiting.pk}"' in page
    assert "data-focus" in page


def test_htmx_gets_the_conflict_with_its_status(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    fields = drawn(ben, waiting, "approve")
    build.external_refund("4821", 2000)
    answer = ben.post(url(waiting, "approve"), fields, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert "What changed on the order" in text(answer)
    assert has_form(text(answer), url(waiting, "approve"))


def test_a_press_can_be_looked_up_by_whoever_made_it(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    press(ben, waiting, "approve")
    found = Intent.objects.get()
    assert "It was recorded" in text(ben.get(f"/recorded/{found.pk}"))
    assert "Nothing is recorded under this press" in text(ben.get(f"/recorded/{uuid4()}"))
    assert signed_in(cast.cleo).get(f"/recorded/{found.pk}").status_code == 404


def test_a_form_that_says_nothing_of_the_screen_is_refused(cast: Cast, waiting: Operation) -> None:
    answer = press(signed_in(cast.ben), waiting, "approve", intent="", obj_version="")
    assert answer.status_code == 422
    assert not Approval.objects.exists()


def test_a_form_used_for_one_refund_is_no_form_for_another(cast: Cast, waiting: Operation) -> None:
    ben = signed_in(cast.ben)
    used = drawn(ben, waiting, "approve")
    ben.post(url(waiting, "approve"), used)
    other = build.proposed(cast.echo, "4821", 1000)
    answer = press(ben, other, "approve", intent=used["intent"])
    assert answer.status_code == 409
    assert _state(other) == states.AWAITING_APPROVAL
