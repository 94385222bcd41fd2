"""One proposal on two screens: Back, tabs, two leads in one moment, stale pages, one's own."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Locator, Page, expect

from refunds import approvals
from refunds.domain import states
from refunds.models import Approval, Operation
from review.models import Intent, RefusedAct
from tests import build
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors
from tests.bugs.races import order_held, until_waiting

DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))
TEXT = "The parcel never came back to us."
# What a person can do who knows how pages work: their own token, somebody else's hidden values.
BY_HAND = """async ([address, values]) => {
  const token = document.getElementsByName('csrfmiddlewaretoken')[0].value;
  const body = new URLSearchParams({...values, csrfmiddlewaretoken: token});
  const answer = await fetch(address, {method: 'POST', body});
  return [answer.status, await answer.text()];
}"""


@pytest.fixture
def waiting(stage: Stage) -> Operation:
    return stage.proposed("one", "A-1", 1000, by="echo")


def _open(page: Page, operation: Operation) -> None:
    page.goto(f"/approvals?open={operation.pk}")
    expect(page.locator("#acts")).to_be_visible()


def _approve(page: Page) -> Locator:
    return page.get_by_role("button", name="Approve refund of")


def _state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


@DELAYED
@pytest.mark.parametrize("scripts", [True, False])
def test_back_after_approving_shows_no_button_that_approves(
    visitors: Visitors, waiting: Operation, scripts: bool
) -> None:
    page = visitors.sign_in("cleo", scripts=scripts)
    _open(page, waiting)
    _approve(page).click()
    expect(page.locator("#result")).to_contain_text("Approved at")
    page.get_by_role("link", name="Follow it").click()
    expect(page.locator("#timeline")).to_be_visible()
    for _ in range(1 if scripts else 2):  # without scripts the result has an address of its own
        page.go_back()
        expect(page.locator("#acts")).to_be_visible()
        expect(_approve(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Take the approval back")).to_be_visible()
    assert Approval.objects.count() == 1


def test_a_page_that_comes_back_from_the_browsers_memory_is_drawn_again(
    visitors: Visitors, stage: Stage, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    answer = page.goto(f"/approvals?open={waiting.pk}")
    assert answer is not None
    assert answer.header_value("Cache-Control") == "no-store"
    approvals.approve(waiting.pk, stage.cast.ben, build.shown(waiting))
    expect(_approve(page)).to_be_enabled()  # this page does not know of it
    with page.expect_navigation():
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator("#acts")).to_contain_text("This proposal is authorized")
    expect(_approve(page)).to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False])
def test_the_second_of_two_tabs_changes_nothing_and_says_so(
    visitors: Visitors, waiting: Operation, scripts: bool
) -> None:
    first = visitors.sign_in("cleo", scripts=scripts)
    second = visitors.another_tab(first)
    for page in (first, second):
        _open(page, waiting)
    _approve(first).click()
    expect(first.locator("#result")).to_contain_text("Approved at")
    _approve(second).click()
    expect(second.locator("#result")).to_contain_text("cleo approved this at")
    expect(second.locator("#result")).to_contain_text("Your press changed nothing")
    expect(_approve(second)).to_have_count(0)
    assert Approval.objects.count() == 1
    assert Intent.objects.count() == 1


def test_two_leads_in_the_same_moment_are_one_approval_and_one_is_told_whose(
    visitors: Visitors, waiting: Operation
) -> None:
    pages = {name: visitors.sign_in(name) for name in ("ben", "cleo")}
    for page in pages.values():
        _open(page, waiting)
    with order_held("A-1"):  # neither gets any further before both have pressed
        for page in pages.values():
            _approve(page).click()
        until_waiting(2)
    for page in pages.values():
        expect(page.locator("#result")).to_be_visible()
    approval = Approval.objects.select_related("approver").get()
    winner = approval.approver.username
    loser = next(name for name in pages if name != winner)
    expect(pages[winner].locator("#result")).to_contain_text("Approved at")
    told = pages[loser].locator("#result")
    expect(told).to_contain_text(f"{winner} approved this at")
    expect(told).to_contain_text("Your press changed nothing")
    expect(_approve(pages[loser])).to_have_count(0)
    assert _state(waiting) == states.AUTHORIZED


def test_a_stale_page_of_a_moved_order_is_a_conflict_in_place_with_the_text_kept(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.get_by_role("button", name="Pause live updates").click()
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill(TEXT)
    build.external_refund("A-1", 2000, ref="rf_by_hand")
    with page.expect_response(lambda answer: answer.url.endswith("/reject")) as refused:
        page.get_by_role("button", name="Reject refund of").click()
    assert refused.value.status == 409
    expect(page.locator("#result")).to_contain_text("Not recorded. The facts you were looking at")
    expect(page.locator("#result")).to_contain_text("rf_by_hand")
    expect(page.get_by_label("Why it is not owed")).to_have_value(TEXT)
    assert _state(waiting) == states.AWAITING_APPROVAL
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#result")).to_contain_text("Rejected. Nothing was sent.")


def test_a_stale_page_of_a_decided_refund_puts_its_buttons_away_and_leads_to_the_change(
    visitors: Visitors, stage: Stage, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    writing = visitors.another_tab(page)
    for each in (page, writing):
        _open(each, waiting)
    _approve(page).focus()
    writing.locator("summary", has_text="Reject").click()
    with writing.expect_response(lambda answer: answer.url.endswith("/drafts")):
        writing.get_by_label("Why it is not owed").fill(TEXT)
    approvals.approve(waiting.pk, stage.cast.ben, build.shown(waiting))
    for each in (page, writing):
        each.evaluate("document.body.dispatchEvent(new CustomEvent('heartbeat'))")
    expect(page.locator("#acts")).to_contain_text("The buttons are off until you look")
    expect(_approve(page)).to_have_count(0)
    expect(page.get_by_role("link", name="Show what changed")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#acts")).to_contain_text("This proposal is authorized")
    # Whoever is writing keeps the text, beside buttons that take no press.
    expect(writing.locator("#slot")).to_contain_text("The buttons are off until you look")
    expect(writing.get_by_label("Why it is not owed")).to_have_value(TEXT)
    expect(_approve(writing)).to_be_disabled()
    expect(writing.get_by_role("button", name="Reject refund of")).to_be_disabled()


@pytest.mark.parametrize("by", ["echo", "ada"])
def test_nobody_approves_what_is_their_own_not_even_by_hand(
    visitors: Visitors, stage: Stage, by: str
) -> None:
    own = stage.proposed("own", "A-1", 1000, by=by)
    ada, cleo = visitors.sign_in("ada"), visitors.sign_in("cleo")
    _open(ada, own)
    expect(ada.locator("#acts")).to_contain_text("You cannot approve this")
    expect(_approve(ada)).to_have_count(0)
    right = _right_values(cleo, own)
    assert _pressed_by_hand(ada, own, right)[0] == 403
    refused = RefusedAct.objects.select_related("person").get()
    assert (refused.person.username, refused.code) == ("ada", "own_proposal")
    assert not Approval.objects.exists()
    assert _pressed_by_hand(cleo, own, right)[0] == 200  # the values were the right ones
    assert Approval.objects.get().approver.username == "cleo"


def test_a_rep_approves_nothing_by_hand(visitors: Visitors, stage: Stage) -> None:
    own = stage.proposed("own", "A-1", 1000, by="rosa")
    rosa, cleo = visitors.sign_in("rosa"), visitors.sign_in("cleo")
    rosa.goto("/orders/A-1")
    expect(_approve(rosa)).to_have_count(0)
    status, page = _pressed_by_hand(rosa, own, _right_values(cleo, own))
    assert status == 404, "a rep is not even told that this is there"
    assert str(own.pk) not in page
    assert not Approval.objects.exists()


def _right_values(page: Page, operation: Operation) -> dict[str, str]:
    """What a form on today's facts would post, as the press of a drawing of its own."""
    _open(page, operation)
    drawn: dict[str, str] = page.evaluate(
        "Object.fromEntries(new FormData(document.getElementById('approval-form')))"
    )
    return drawn | {"intent": str(uuid4())}


def _pressed_by_hand(page: Page, operation: Operation, values: dict[str, str]) -> tuple[int, str]:
    status, text = page.evaluate(BY_HAND, [f"/approvals/{operation.pk}/approve", values])
    return status, text
