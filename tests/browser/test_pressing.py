"""Pressing in a real browser: with scripts, without, with the keyboard alone, and twice at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Page, Route, expect

from refunds import dispatch
from refunds.domain import states
from refunds.models import Approval, Operation
from review.models import Intent
from tests import build
from tests.browser.stage import Stage
from tests.browser.visitor import Visitors

DELAYED = override_settings(LIMITS=replace(settings.LIMITS, send_delay_seconds=600))


@pytest.fixture
def waiting(stage: Stage) -> Operation:
    return stage.proposed("one", "A-1", 1000, by="foxtrot")


def _open(page: Page, operation: Operation) -> None:
    page.goto("/approvals")
    page.get_by_role("link", name="Open the refund on order A-1").click()
    expect(page.locator("#approval-form")).to_be_visible()


def _state(operation: Operation) -> str:
    return Operation.objects.values_list("state", flat=True).get(pk=operation.pk)


def _focused(page: Page) -> str:
    """What the focus stands on says; a page without a focus has it on its body, with all its words."""
    return str(page.evaluate("document.querySelector('body :focus')?.innerText ?? ''"))


@DELAYED
def test_approve_and_take_back_in_place(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("Sending has not started yet")
    expect(page.locator("body :focus")).to_contain_text("Approved at")
    assert _state(waiting) == states.AUTHORIZED
    expect(page.locator(f"#row-{waiting.pk}")).to_contain_text("authorized")
    page.get_by_role("button", name="Take the approval back").click()
    expect(page.locator("#result")).to_contain_text("Taken back. Nothing was sent.")
    assert _state(waiting) == states.AWAITING_APPROVAL


@DELAYED
def test_the_seconds_until_sending_run_down(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.get_by_role("button", name="Approve refund of").click()
    left = page.locator("main [data-left]")
    before = int(left.inner_text())
    expect(left).not_to_have_text(str(before), timeout=4000)
    assert int(left.inner_text()) < before


def test_without_scripts_the_same_press_approves(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo", scripts=False)
    _open(page, waiting)
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("Approved at")
    assert _state(waiting) == states.AUTHORIZED
    page.go_back()
    page.reload()
    expect(page.get_by_role("button", name="Approve refund of")).to_have_count(0)


def test_without_scripts_a_reason_that_is_too_short_is_kept(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo", scripts=False)
    _open(page, waiting)
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill("too short")
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#result")).to_contain_text("10 characters")
    expect(page.get_by_label("Why it is not owed")).to_have_value("too short")


def test_a_double_click_is_one_approval(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.get_by_role("button", name="Approve refund of").dblclick()
    expect(page.locator("#result")).to_contain_text("Approved at")
    assert Approval.objects.count() == 1
    assert Intent.objects.count() == 1


def test_a_double_click_without_scripts_is_one_approval(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo", scripts=False)
    _open(page, waiting)
    page.get_by_role("button", name="Approve refund of").dblclick()
    expect(page.locator("#result")).to_be_visible()
    assert Approval.objects.count() == 1


def test_the_keyboard_alone_reaches_the_button_and_enter_in_the_tick_sends_nothing(
    visitors: Visitors, stage: Stage
) -> None:
    first = stage.sent("first", "A-2", 1000, by="omar")
    repeat = stage.again("repeat", "A-2", 1000, by="foxtrot", separate_from=first.pk)
    page = visitors.sign_in("cleo")
    page.goto(f"/approvals?open={repeat.pk}")
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "separate":
            break
    page.keyboard.press("Enter")
    assert _state(repeat) == states.AWAITING_APPROVAL
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    assert _focused(page).startswith("Approve refund of")
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_contain_text("Approved at")
    assert Approval.objects.get(operation=repeat).separate_refund_confirmed


def test_a_moved_order_is_a_conflict_in_place_with_the_focus_on_it(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    build.external_refund("A-1", 2000, ref="rf_by_hand")
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("changed from version 1 to 2")
    expect(page.locator("body :focus")).to_contain_text("Not approved")
    expect(page.locator("#result")).to_contain_text("rf_by_hand")
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#result")).to_contain_text("Approved at")
    assert Approval.objects.get().order_version == 2


def test_a_press_whose_answer_is_lost_is_never_offered_again(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/approve", lose_the_answer)
    page.get_by_role("button", name="Approve refund of").click()
    expect(page.locator("#slot")).to_contain_text("We could not tell whether your action")
    visitors.complaints.clear()  # the browser names the request that we cut
    page.get_by_role("link", name="Check what was recorded").click()
    expect(page.locator("main")).to_contain_text("It was recorded")
    assert _state(waiting) == states.AUTHORIZED


def test_an_ended_session_is_signed_in_again_in_place_and_the_text_is_kept(
    visitors: Visitors, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    _open(page, waiting)
    page.locator("summary", has_text="Reject").click()
    page.get_by_label("Why it is not owed").fill("The parcel came back to us unopened.")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#slot")).to_contain_text("nothing was submitted")
    page.get_by_label("Name").fill("cleo")
    page.get_by_label("Password").fill("a-long-test-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#slot")).to_contain_text("Your text is still here")
    assert _state(waiting) == states.AWAITING_APPROVAL
    page.get_by_role("button", name="Reject refund of").click()
    expect(page.locator("#result")).to_contain_text("Rejected. Nothing was sent.")


def test_a_list_says_that_it_changed_and_moves_nothing(
    visitors: Visitors, stage: Stage, waiting: Operation
) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/approvals")
    expect(page.locator("#live")).to_be_visible()
    stage.proposed("two", "A-9", 1100, by="omar")
    expect(page.locator("#list-poll")).to_contain_text("1 changed: show", timeout=15000)
    expect(page.locator("#queue-rows tr")).to_have_count(1)
    page.get_by_role("link", name="1 changed: show").click()
    expect(page.locator("#queue-rows tr")).to_have_count(2)


def test_an_open_operation_follows_the_state_and_puts_its_buttons_away(
    visitors: Visitors, stage: Stage
) -> None:
    with DELAYED:
        operation = stage.approved("one", "A-1", 1000)
        page = visitors.sign_in("cleo")
        page.goto(f"/operations/{operation.pk}")
        expect(page.get_by_role("button", name="Take the approval back")).to_be_visible()
        Operation.objects.filter(pk=operation.pk).update(not_before=None)
        assert dispatch.send(str(operation.pk)) == "confirmed"
        expect(page.locator("#status-panel")).to_contain_text("succeeded", timeout=15000)
        expect(page.locator("#acts")).to_contain_text("The buttons are off")
        expect(page.get_by_role("button", name="Take the approval back")).to_have_count(0)
        expect(page.locator("#said")).to_have_text("This operation is now succeeded.")


def test_a_paused_page_asks_for_nothing(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    page.goto("/approvals")
    page.get_by_role("button", name="Pause live updates").click()
    expect(page.locator("#live")).to_contain_text("Paused")
    page.reload()
    expect(page.locator("#live")).to_contain_text("Paused")


def test_the_theme_stays_without_browser_storage(visitors: Visitors) -> None:
    page = visitors.sign_in("cleo")
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Light or dark").click()
    page.goto("/approvals")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    kept = page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage)]")
    assert set(kept) <= {"htmx-current-path-for-history"}  # an address, no content


def test_an_id_is_copied_and_that_is_said(visitors: Visitors, waiting: Operation) -> None:
    page = visitors.sign_in("cleo")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/operations/{waiting.pk}")
    page.get_by_role("button", name="Copy operation id").click()
    expect(page.locator("#said")).to_have_text("Copied operation id")
    assert page.evaluate("navigator.clipboard.readText()") == str(waiting.pk)
